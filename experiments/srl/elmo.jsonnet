// The baseline with ELMo at the input of its encoder, where it helps most (Table 3 of the paper).
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('input', {
  bilm: 'runs/bilm',
  // Paper and AllenNLP: lambda = 0.001 for this task, no layer normalization.
  mix: { type: 'scalar_mix', l2: 0.001 },
  dropout: 0.1,  // AllenNLP; the paper does not specify this
})
