// The baseline with ELMo at the input of its encoder only, not in the span vectors.
(import 'baseline.jsonnet') + {
  model+: {
    context_embedder: {
      type: 'elmo_token_embedder',
      bilm: 'runs/bilm',
      mix: { type: 'scalar_mix' },  // paper: lambda = 0, no layer normalization
      dropout: 0.5,  // paper
    },
  },
}
