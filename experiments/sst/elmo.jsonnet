// The baseline with ELMo at the input of the first encoder and at the output, which for this model
// lies behind the attention. AllenNLP has it at the input only, with neither dropout nor penalty.
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('both', {
  bilm: 'runs/bilm',
  mix: { type: 'scalar_mix', l2: 0.001 },  // paper
  dropout: 0.5,  // paper
})
