// The tagger of Peters et al. (2017), TagLM, on ELMo's biLM: the top layer alone, never trained and
// without weights, between the first recurrent layer and the second.
(import 'baseline.jsonnet') + {
  local layer = { type: 'gru', hidden_size: 300, bidirectional: true },  // its paper, for NER
  model+: {
    encoder: layer,
    output_embedder: {
      type: 'elmo_token_embedder',
      bilm: 'runs/bilm',
      mix: { type: 'scalar_mix', scalar_mix_parameters: [-9e10, -9e10, 1] },
      dropout: 0.0,  // the tagger's own acts on the output of each layer
    },
    output_encoder: layer,
  },
}
