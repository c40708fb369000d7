// Trees, parts of speech, features and lemmas of one treebank, without ELMo.
{
  plugins: ['plugins.ud_parser'],
  dataset_reader: { type: 'universal_dependencies' },
  train_data_path: 'data/ewt/ud/en_ewt-ud-train.conllu',
  validation_data_path: 'data/ewt/ud/en_ewt-ud-dev.conllu',
  model: {
    type: 'ud_parser',
    embedder: {
      token_embedders: {
        // Words that occur once train the vector of unknown words.
        tokens: { type: 'embedding', embedding_dim: 100, lowercase: true, min_count: 2 },
        token_characters: {
          type: 'character_encoding',
          embedding: { embedding_dim: 32 },
          encoder: { type: 'cnn', num_filters: 50, ngram_filter_sizes: [2, 3, 4] },
        },
      },
    },
    // Dozat and Manning (2017): 3 layers of 400 with dropout 0.33.
    encoder: { type: 'lstm', hidden_size: 400, num_layers: 3, bidirectional: true, dropout: 0.33 },
  },
  data_loader: { batch_size: 32, bucketing: true },
  trainer: {
    optimizer: { type: 'adam', lr: 0.002, betas: [0.9, 0.9] },  // Dozat and Manning (2017)
    learning_rate_scheduler: { type: 'exponential', gamma: 0.97 },
    grad_norm: 5.0,
    num_epochs: 100,
    patience: 15,
    validation_metric: '+LAS',
  },
}
