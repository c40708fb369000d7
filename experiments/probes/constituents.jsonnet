// The grandparent constituent of each word by a linear probe (Blevins et al. 2018), on the sample of
// the Penn Treebank, which is one file.
(import 'probe.libsonnet') {
  dataset_reader: { type: 'constituents', level: 2 },
  train_data_path: 'data/ptb_sample/wsj_0001-0199.mrg',
  validation_fraction: 0.1,
  test_fraction: 0.1,
}
