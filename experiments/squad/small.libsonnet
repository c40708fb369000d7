// Settings for two cores: add them to either config to train in minutes.
//
//   (import 'elmo.jsonnet') + (import 'small.libsonnet')
{
  test_fraction: 0.1,  // `elmo evaluate RUN --test` scores it
  local encoder = { hidden_size: 48 },
  model+: {
    embedder+: {
      token_embedders+: {
        tokens+: {
          embedding_dim: 50,
          pretrained_file: 'data/glove/glove.6B.50d.txt',
          lowercase: true,  // the file is in lower case
          case_fallback: false,
        },
        token_characters+: { encoder+: { num_filters: 50 } },
      },
    },
    encoder+: encoder,
    residual_encoder+: encoder,
    span_start_encoder+: encoder,
    span_end_encoder+: encoder,
    projection_dim: 96,
  },
  data_loader+: { batch_size: 32 },
  trainer+: {
    // Adadelta needs thousands of steps to warm up; this run is shorter.
    optimizer: { type: 'adam', lr: 0.002 },
    moving_average: { decay: 0.99 },
    grad_norm: 5.0,
    num_epochs: 8,
    evaluate_every: { epochs: 1 },
    patience: 2,
  },
}
