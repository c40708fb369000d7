// Four transformer layers: 4,212,224 parameters in the context layers. A window is twice as long as
// that of the LSTM with half of the rows, so that an update reads as many words.
(import '../../lib/today.libsonnet') + {
  model+: {
    context_layers: {
      type: 'transformer',
      num_layers: 4,
      num_heads: 4,
      head_dim: 64,
      feedforward_dim: 1536,
      memory_size: 40,
    },
  },
  data_loader+: { batch_size: 32, unroll_steps: 40 },
}
