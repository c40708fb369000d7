// Settings for two cores: add them to either config to train in minutes.
//
//   (import 'elmo.jsonnet') + (import 'small.libsonnet')
//
// Training reads whole sentences only, with GloVe's smallest vectors.
{
  test_fraction: 0.1,  // `elmo evaluate RUN --test` scores it
  dataset_reader+: { use_subtrees: false },
  model+: {
    embedder+: {
      token_embedders+: {
        tokens+: {
          embedding_dim: 50,
          pretrained_file: 'data/glove/glove.6B.50d.top100k.txt',
          lowercase: true,  // the file is in lower case
        },
      },
    },
    pre_encode_feedforward+: { hidden_dims: 100 },
    encoder+: { hidden_size: 100 },
    integrator+: { hidden_size: 100 },
    output_layer+: { hidden_dims: [200, 100] },
  },
  data_loader+: { batch_size: 32 },
  trainer+: {
    optimizer+: { lr: 0.001 },  // AllenNLP; the paper's value needs many more updates
    num_epochs: 12,
    patience: 4,
  },
}
