// Two GRU layers: 4,208,640 parameters in the context layers.
(import '../../lib/today.libsonnet') + {
  model+: { context_layers: { type: 'gru', cell_size: 512, num_layers: 2 } },
}
