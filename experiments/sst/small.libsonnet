// Settings for two cores: add them to either config to train in minutes.
//
//   (import 'elmo.jsonnet') + (import 'small.libsonnet')
//
// GloVe's smallest vectors are trained here. Without that, and without phrases, the model is no
// better than a bag of words (experiments/README.md).
{
  test_fraction: 0.1,  // `elmo evaluate RUN --test` scores it
  datasets_for_vocab_creation: ['train'],
  model+: {
    embedder+: {
      token_embedders+: {
        tokens+: {
          embedding_dim: 50,
          pretrained_file: 'data/glove/glove.6B.50d.txt',
          trainable: true,
          lowercase: true,  // the file is in lower case
        },
      },
    },
    pre_encode_feedforward+: { hidden_dims: 100 },
    encoder+: { hidden_size: 100 },
    integrator+: { hidden_size: 100 },
    output_layer+: { hidden_dims: [200, 100] },
  },
  data_loader+: { batch_size: 64 },
  trainer+: {
    optimizer+: { lr: 0.001 },  // AllenNLP; the paper's value needs many more updates
    // An epoch has 1,324 steps.
    num_epochs: 4,
    evaluate_every: { steps: 440 },
    patience: 4,
  },
}
