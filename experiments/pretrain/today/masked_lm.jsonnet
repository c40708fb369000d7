// A masked language model: eight transformer layers that read both sides of a word, 4,212,224
// parameters in the context layers. A batch reads as many words as that of the LSTM: rows of both
// directions, whose windows are three times as long. Nothing is carried.
local today = import '../../lib/today.libsonnet';
today + {
  model: {
    type: 'masked_lm',
    token_encoder: today.model.token_encoder,
    context_layers: {
      type: 'bidirectional_transformer',
      num_layers: 8,
      num_heads: 4,
      head_dim: 64,
      feedforward_dim: 1536,
    },
    max_vocabulary_size: 20000,
    num_samples: 4096,
  },
  data_loader+: { batch_size: 20, unroll_steps: 64 },
  trainer+: { validation_metric: '-masked_perplexity' },
}
