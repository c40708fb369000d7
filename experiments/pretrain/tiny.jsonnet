// Pretrain a small biLM on two cores: 25 minutes on a few million words. It has an eighth of the
// original's cells and projection, and a quarter of its filters. See experiments/README.md for
// results.
{
  dataset_reader: { type: 'language_modeling' },
  train_data_path: 'data/lm/shards/lm-00*.txt',
  validation_data_path: 'data/lm/valid.txt',
  model: {
    type: 'bilm',
    token_encoder: {
      type: 'char_cnn',
      filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256]],
      num_highway: 1,
      projection_dim: 64,
    },
    context_layers: {
      type: 'elmo_lstm',
      cell_size: 512,
      projection_dim: 64,
      num_layers: 2,
      dropout: 0.1,
    },
    max_vocabulary_size: 30000,
    num_samples: 2048,
    state_reset_rate: 0.05,  // needed for short training: docs/decisions/zero_state.md
  },
  data_loader: { type: 'windows', batch_size: 32, unroll_steps: 20 },
  trainer: {
    optimizer: { type: 'adam', lr: 0.002 },
    grad_norm: 1.0,
    num_epochs: null,
    max_minutes: 25,
    evaluate_every: { minutes: 5 },
    validation_metric: '-perplexity',
  },
}
