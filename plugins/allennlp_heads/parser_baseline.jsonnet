// Constituency parsing by labels of spans, with the sizes of AllenNLP's parser (Joshi et al. 2018).
{
  plugins: ['plugins.allennlp_heads'],
  dataset_reader: { type: 'ptb_trees' },
  train_data_path: 'data/ptb/train.mrg',
  validation_data_path: 'data/ptb/dev.mrg',
  model: {
    type: 'constituency_parser',
    embedder: { token_embedders: { tokens: { type: 'embedding', embedding_dim: 100, min_count: 2 } } },
    encoder: {
      type: 'stacked_bidirectional_lstm',
      hidden_size: 250,
      num_layers: 2,
      recurrent_dropout_probability: 0.2,
      recurrent_dropout_place: 'recurrence',
      layer_dropout_probability: 0.2,
    },
    feedforward: { num_layers: 1, hidden_dims: 250, activations: 'relu', dropout: 0.1 },
  },
  data_loader: { batch_size: 32, bucketing: true },
  trainer: {
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95 },
    grad_norm: 5.0,
    num_epochs: 150,
    patience: 20,
    validation_metric: '+evalb_f1_measure',
  },
}
