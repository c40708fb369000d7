// The baseline with ELMo at the input of its encoder.
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('input', {
  bilm: 'runs/bilm',
  // lambda = 0.1 for this task (the paper's supplement); no layer normalisation.
  mix: { type: 'scalar_mix', l2: 0.1 },
  // The tagger's own dropout follows at once. The paper drops half of ELMo, and then no more.
  dropout: 0.0,
})
