// Questions about answers in SQuAD's passages, without ELMo.
{
  plugins: ['plugins.question_generation'],
  dataset_reader: { type: 'squad_questions' },
  train_data_path: 'data/squad/train-*.json',
  validation_data_path: 'data/squad/dev-*.json',
  vocabulary: { max_vocab_size: { question_words: 5000 } },
  model: {
    type: 'question_generator',
    embedder: {
      token_embedders: {
        tokens: {
          type: 'embedding',
          embedding_dim: 50,
          pretrained_file: 'data/glove/glove.6B.50d.txt',
          lowercase: true,
          trainable: false,
        },
      },
    },
    encoder: { type: 'lstm', hidden_size: 150, bidirectional: true },
  },
  data_loader: { batch_size: 32, bucketing: true },
  trainer: {
    optimizer: { type: 'adam', lr: 0.001 },
    grad_norm: 5.0,
    num_epochs: 20,
    patience: 4,
    validation_metric: '-loss',
  },
}
