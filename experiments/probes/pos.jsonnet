// Parts of speech of English EWT (17 universal tags) by a linear probe.
(import 'probe.libsonnet') {
  dataset_reader: { type: 'universal_dependencies_pos' },
  train_data_path: 'data/ewt/ud/en_ewt-ud-train.conllu',
  validation_data_path: 'data/ewt/ud/en_ewt-ud-dev.conllu',
  test_fraction: 0.1,
}
