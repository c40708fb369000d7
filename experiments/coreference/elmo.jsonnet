// The baseline with ELMo at the input of its encoder.
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('input', {
  bilm: 'runs/bilm',
  mix: { type: 'scalar_mix' },  // paper: lambda = 0, no layer normalisation
  // Paper: half is dropped, which lexical_dropout does to the vectors of all embedders.
  dropout: 0.0,
})
