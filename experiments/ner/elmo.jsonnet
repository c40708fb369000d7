// The baseline with ELMo at the input of its encoder.
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('input', {
  bilm: 'runs/bilm',
  // Paper and AllenNLP: lambda = 0.1 for this task, no layer normalisation.
  mix: { type: 'scalar_mix', l2: 0.1 },
  // AllenNLP: the tagger's own dropout follows at once. The paper drops half here as well.
  dropout: 0.0,
})
