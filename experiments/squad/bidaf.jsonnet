// SQuAD 1.1 with bi-directional attention flow (Seo et al. 2017) as in AllenNLP. All values are
// AllenNLP's.
{
  dataset_reader: { type: 'squad' },
  train_data_path: 'data/squad/train-*.json',
  validation_data_path: 'data/squad/dev-*.json',
  datasets_for_vocab_creation: ['train', 'validation'],
  model: {
    type: 'bidaf',
    embedder: {
      token_embedders: {
        tokens: {
          type: 'embedding',
          embedding_dim: 100,
          pretrained_file: 'data/glove/glove.6B.100d.txt',
          trainable: false,
          lowercase: true,
        },
        token_characters: {
          type: 'character_encoding',
          embedding: { embedding_dim: 16 },
          encoder: { type: 'cnn', num_filters: 100, ngram_filter_sizes: [5] },
          dropout: 0.2,
        },
      },
    },
    num_highway_layers: 2,
    encoder: { type: 'lstm', hidden_size: 100, bidirectional: true },
    modeling_layer: {
      type: 'lstm',
      hidden_size: 100,
      num_layers: 2,
      bidirectional: true,
      dropout: 0.2,
    },
    span_end_encoder: { type: 'lstm', hidden_size: 100, bidirectional: true },
    dropout: 0.2,
    max_span_length: null,
    // The initializers of AllenNLP's modules. All other parameters are initialized as in PyTorch.
    initializer: [
      ['token_characters.embedding', 'xavier_uniform'],
      ['highway.*weight', { type: 'kaiming_uniform', a: std.sqrt(5) }],  // as PyTorch's Linear
      ['highway.*transform.bias', { type: 'uniform', a: -std.sqrt(1 / 200), b: std.sqrt(1 / 200) }],
      // AllenNLP sets the bias of the carry gate to 1; here the gate has the opposite sign.
      ['highway.*carry.bias', { type: 'constant', val: -1 }],
    ],
  },
  data_loader: { batch_size: 40, bucketing: true },
  trainer: {
    optimizer: { type: 'adam', lr: 0.001, betas: [0.9, 0.9] },
    learning_rate_scheduler: { type: 'reduce_on_plateau', factor: 0.5, patience: 2 },
    grad_norm: 5.0,
    num_epochs: 20,
    patience: 10,
    validation_metric: '+em',
  },
}
