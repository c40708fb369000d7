// Laid over a configuration of this folder, for two cores and minutes:
//
//   (import 'elmo.jsonnet') + (import 'small.libsonnet')
//
// Half of the layers at half of the width, GloVe's smallest vectors, and Adam, which needs a fraction
// of Adadelta's epochs.
{
  model+: {
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
