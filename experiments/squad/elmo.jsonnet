// The baseline with ELMo at the input and at the output of its first encoder (Table 3 of the paper:
// 85.6, compared with 85.1 at the input only and 84.8 at the output only).
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('both', {
  bilm: 'runs/bilm',
  // Original code: no layer normalization, lambda = 0. The best result in Table 2 of the paper has
  // lambda = 0.001.
  mix: { type: 'scalar_mix', l2: 0.0 },
  dropout: 0.5,  // original code, after each mix
})
