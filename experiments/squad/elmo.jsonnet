// The baseline with ELMo at the input and beside what its first encoder gives (Table 3 of the
// paper: 85.6, against 85.1 at the input alone and 84.8 at the output alone).
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('both', {
  bilm: 'runs/bilm',
  // Original code: no layer normalisation, lambda = 0. Table 2 of the paper has 0.001 for its
  // best line.
  mix: { type: 'scalar_mix', l2: 0.0 },
  dropout: 0.5,  // original code, after each mix
})
