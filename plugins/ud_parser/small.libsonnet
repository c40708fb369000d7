// Settings for one core: add them to either config to train in some ten minutes.
//
//   (import 'elmo.jsonnet') + (import 'small.libsonnet')
{
  model+: {
    encoder+: { hidden_size: 150, num_layers: 2 },
    arc_representation_dim: 200,
    tag_representation_dim: 64,
  },
  trainer+: { num_epochs: 20, learning_rate_scheduler+: { gamma: 0.9 } },
}
