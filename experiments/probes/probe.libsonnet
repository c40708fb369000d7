// A linear probe: logistic regression on one frozen vector per word (section 5.3 of the paper,
// Table 6). Laid over a config that names the reader and the data.
{
  model: {
    type: 'simple_tagger',
    embedder: { token_embedders: { elmo: $.bilm_layer } },
  },
  // mix.index: 0 is the character CNN, -1 the top layer.
  bilm_layer:: {
    type: 'elmo_token_embedder',
    bilm: 'runs/bilm',
    mix: { type: 'layer', index: -1 },
    dropout: 0.0,
  },
  data_loader: { batch_size: 32 },
  trainer: {
    optimizer: { type: 'adam', lr: 0.003 },
    learning_rate_scheduler: { type: 'exponential', gamma: 0.8 },
    num_epochs: 15,
    patience: 3,
    validation_metric: '+accuracy',
    callbacks: [],
  },
}
