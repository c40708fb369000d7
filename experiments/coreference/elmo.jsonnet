// The baseline with ELMo at the input of its encoder; the vectors of spans have no part of it.
(import 'baseline.jsonnet') + {
  model+: {
    context_embedder: {
      type: 'elmo_token_embedder',
      bilm: 'runs/bilm',
      mix: { type: 'scalar_mix' },  // paper: lambda = 0, no layer normalisation
      dropout: 0.5,  // paper
    },
  },
}
