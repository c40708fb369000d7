// SQuAD 2.0, where a question may have no answer: the baseline with the no-answer option of Clark
// and Gardner (2018, section 3.3). Works with small.libsonnet, as the baseline does.
(import 'baseline.jsonnet') + {
  train_data_path: 'data/squad2/train-*.json',
  validation_data_path: 'data/squad2/dev-*.json',
  model+: {
    no_answer: true,
    initializer+: [['no_answer.*weight', 'xavier_uniform']],
  },
}
