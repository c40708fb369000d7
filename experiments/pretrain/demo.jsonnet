// Pretrain a tiny biLM on the sentences of the demo, in less than a minute on two cores.
//
//   elmo train experiments/pretrain/demo.jsonnet -s runs/demo/bilm
{
  dataset_reader: { type: 'language_modeling' },
  train_data_path: 'experiments/demo/lm_train.txt',
  validation_data_path: 'experiments/demo/lm_valid.txt',
  model: {
    type: 'bilm',
    token_encoder: {
      type: 'char_cnn',
      embedding_dim: 16,
      filters: [[1, 16], [2, 32], [3, 64], [4, 64], [5, 80]],
      num_highway: 1,
      projection_dim: 32,
    },
    context_layers: {
      type: 'elmo_lstm',
      cell_size: 128,
      projection_dim: 32,
      num_layers: 2,
      dropout: 0.1,
    },
    dropout: 0.1,
    num_samples: 512,
    state_reset_rate: 0.05,
    min_count: 2,  // so that words that occur once train <UNK>
  },
  data_loader: { type: 'windows', batch_size: 16, unroll_steps: 20 },
  trainer: {
    // With so few updates, Adam is better than the paper's Adagrad.
    optimizer: { type: 'adam', lr: 0.004 },
    grad_norm: 10.0,
    num_epochs: 10,
    evaluate_every: { epochs: 1 },
    validation_metric: '-perplexity',
  },
  random_seed: 13370,
}
