// Settings for two cores: add them to either config to train in minutes.
//
//   (import 'elmo.jsonnet') + (import 'small.libsonnet')
//
// Half of the layers at half of the size, GloVe's smallest vectors, and Adam, which needs a
// fraction of Adadelta's epochs. With so few updates, the small initial weights of He et al. cost
// four points. So the projection is orthogonal here, as in AllenNLP.
{
  test_fraction: 0.1,  // `elmo evaluate RUN --test` scores it
  model+: {
    initializer: null,
    embedder+: {
      token_embedders+: {
        tokens+: {
          embedding_dim: 50,
          pretrained_file: 'data/glove/glove.6B.50d.txt',
        },
      },
    },
    encoder+: { hidden_size: 128, num_layers: 4 },
  },
  trainer+: {
    optimizer: { type: 'adam', lr: 0.002 },
    num_epochs: 15,
    patience: 3,
  },
}
