// Pretraining in the size of `mini`, with other context layers: one pass over ten million words, in
// one process with one thread, in at most two hours of CPU time.
//
//   (import '../../lib/today.libsonnet') + { model+: { context_layers: ... } }
//
// AdamW has no weight decay here: it would also shrink the rows of the softmax that a batch does not
// sample.
(import '../pretrain/mini.jsonnet') + {
  train_data_path: 'data/corpus/today/training',
  validation_data_path: 'data/corpus/today/held_out',
  trainer+: {
    optimizer: { type: 'adamw', lr: 0.002, betas: [0.9, 0.98], weight_decay: 0.0 },
    learning_rate_scheduler: { type: 'linear_with_warmup', warmup_steps: 400 },
    evaluate_every: { steps: 1000 },
  },
}
