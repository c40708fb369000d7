// The baseline with ELMo at the input of its encoder.
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('input', {
  bilm: 'runs/bilm',
  // Paper and AllenNLP: lambda = 0.1 for this task, no layer normalization.
  mix: { type: 'scalar_mix', l2: 0.1 },
  // AllenNLP: the dropout of the tagger follows directly. The paper also has 0.5 here.
  dropout: 0.0,
})
