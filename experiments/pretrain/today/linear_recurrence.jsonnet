// Four gated linear recurrences: 4,222,464 parameters in the context layers.
(import '../../lib/today.libsonnet') + {
  model+: { context_layers: { type: 'linear_recurrence', cell_size: 1024, num_layers: 4 } },
}
