// Laid over a configuration of this folder, for two cores and minutes:
//
//   (import 'elmo.jsonnet') + (import 'small.libsonnet')
//
// Half of the layers at half of the width, GloVe's smallest vectors, and Adam, which needs a fraction
// of Adadelta's epochs. In so few updates the small weights that He et al. start from cost four points:
// the projection starts orthogonal here, as in AllenNLP.
{
  model+: {
    initializer: null,
    embedder+: {
      token_embedders+: {
        tokens+: {
          embedding_dim: 50,
          pretrained_file: 'data/glove/glove.6B.50d.top100k.txt',
        },
      },
    },
    encoder+: { hidden_size: 128, num_layers: 4 },
  },
  trainer+: {
    optimizer: { type: 'adam', lr: 0.002 },
    num_epochs: 8,
    patience: 3,
  },
}
