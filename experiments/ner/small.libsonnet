// Settings for two cores: add them to either config to train in minutes.
//
//   (import 'elmo.jsonnet') + (import 'small.libsonnet')
//
// Half of the encoder's size, about half of the epochs, and GloVe's smallest vectors.
{
  test_fraction: 0.1,  // `elmo evaluate RUN --test` scores it
  model+: {
    embedder+: {
      token_embedders+: {
        tokens+: { pretrained_file: 'data/glove/glove.6B.50d.txt' },
        token_characters+: { encoder+: { num_filters: 64 } },
      },
    },
    encoder+: { hidden_size: 100 },
  },
  data_loader+: { batch_size: 32 },
  trainer+: { num_epochs: 40, patience: 10 },
}
