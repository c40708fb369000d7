// Entailment on SNLI by decomposable attention, with the sizes of Parikh et al. (2016): words are
// projected to 200, and each network has two layers of 200 with dropout 0.2.
local layers = { num_layers: 2, hidden_dims: 200, activations: 'relu', dropout: 0.2 };
{
  plugins: ['plugins.allennlp_heads'],
  dataset_reader: { type: 'snli', tokenizer: 'spacy' },
  train_data_path: 'data/snli/snli_1.0_train.jsonl',
  validation_data_path: 'data/snli/snli_1.0_dev.jsonl',
  model: {
    type: 'decomposable_attention',
    embedder: { token_embedders: { tokens: { type: 'embedding', embedding_dim: 200, min_count: 2 } } },
    attend_feedforward: layers,
    compare_feedforward: layers,
    // The layer of the labels follows.
    aggregate_feedforward: { num_layers: 1, hidden_dims: 200, activations: 'relu', dropout: 0.2 },
    initializer: [['(linear_layers.*|output_logit.)weight', 'xavier_normal']],
  },
  data_loader: { batch_size: 64, bucketing: true },
  trainer: {
    optimizer: { type: 'adagrad', lr: 0.05 },  // the paper's rate
    grad_norm: 5.0,
    num_epochs: 140,
    patience: 20,
    validation_metric: '+accuracy',
  },
}
