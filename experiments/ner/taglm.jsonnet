// The tagger of Peters et al. (2017), TagLM, with ELMo's biLM: only the top layer, fixed and
// without layer weights, between the first and the second recurrent layer.
(import 'baseline.jsonnet') + {
  local layer = { type: 'gru', hidden_size: 300, bidirectional: true },  // TagLM paper, for NER
  model+: {
    encoder: layer,
    output_embedder: {
      type: 'elmo_token_embedder',
      bilm: 'runs/bilm',
      mix: { type: 'scalar_mix', scalar_mix_parameters: [-9e10, -9e10, 1] },
      dropout: 0.0,  // the dropout of the tagger follows each layer
    },
    output_encoder: layer,
  },
}
