// Chunks of CoNLL-2000 by a linear probe. The shared task has no development data.
(import 'probe.libsonnet') {
  dataset_reader: { type: 'conll2000', tag_label: 'chunk', coding_scheme: 'BIO' },
  train_data_path: 'data/conll2000/train.txt',
  validation_fraction: 0.1,
  test_fraction: 0.1,
  trainer+: { validation_metric: '+f1-measure-overall' },
}
