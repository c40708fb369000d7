// Settings for two cores: add them to either config to train in minutes.
//
//   (import 'elmo.jsonnet') + (import 'small.libsonnet')
//
// The data is OntoGUM, which needs no license, with GloVe's smallest vectors. With so few updates,
// the initial weights of e2e-coref cost three points or more. So parameters are initialized as in
// PyTorch's modules.
local feedforward = { hidden_dims: 100 };
{
  test_fraction: 0.1,  // `elmo evaluate RUN --test` scores it
  dataset_reader+: { genre_pattern: '^GUM_([a-z]+)_' },
  train_data_path: 'data/gum/conll2012_ontogum/train.conll',
  validation_data_path: 'data/gum/conll2012_ontogum/dev.conll',
  model+: {
    initializer: null,
    embedder+: {
      token_embedders+: {
        tokens+: {
          embedding_dim: 50,
          pretrained_file: 'data/glove/glove.6B.50d.txt',
          lowercase: true,  // the file is in lower case
        },
        turian:: {},  // none
      },
    },
    encoder+: { hidden_size: 100 },
    mention_feedforward+: feedforward,
    antecedent_feedforward+: feedforward,
  },
  trainer+: {
    learning_rate_scheduler: { type: 'exponential', gamma: 0.97 },
    num_epochs: 30,
    patience: 5,
  },
}
