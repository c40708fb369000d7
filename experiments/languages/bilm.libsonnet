// Pretraining of a biLM of a language, in the size of `mini`: 11 million words and sentence ends.
//
//   (import 'bilm.libsonnet') + { corpus:: 'data/corpus/de' }
(import '../pretrain/mini.jsonnet') + {
  corpus:: error 'bilm.libsonnet: set corpus:: to the folder that `elmo prepare` wrote',
  train_data_path: $.corpus + '/training',
  validation_data_path: $.corpus + '/held_out',
  model+: { max_vocabulary_size: 30000 },
  trainer+: {
    // A time that is the same for all languages: each text is read once or a little more often.
    num_epochs: null,
    num_steps: 8600,
    learning_rate_scheduler+: { warmup_steps: 430 },  // a twentieth
    evaluate_every: { steps: 1000 },
  },
}
