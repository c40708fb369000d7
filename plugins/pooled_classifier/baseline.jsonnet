// Classify sentences by topic (three classes), without ELMo. The data is a small sample: set the
// paths to your own.
{
  plugins: ['plugins.pooled_classifier'],
  dataset_reader: { type: 'labelled_text_json' },
  train_data_path: 'tests/fixtures/pooled_classifier/train.jsonl',
  validation_data_path: 'tests/fixtures/pooled_classifier/valid.jsonl',
  model: {
    type: 'pooled_classifier',
    embedder: { token_embedders: { tokens: { type: 'embedding', embedding_dim: 50, lowercase: true } } },
    feedforward: { num_layers: 2, hidden_dims: [1024, 256], activations: 'relu', dropout: 0.2 },
  },
  data_loader: { batch_size: 8 },
  trainer: {
    optimizer: { type: 'adam', lr: 0.001 },
    grad_norm: 5.0,
    num_epochs: 20,
    patience: 5,
    validation_metric: '+accuracy',
  },
}
