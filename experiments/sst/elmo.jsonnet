// The baseline with ELMo at the input of the first encoder and at the output, which for this model
// lies behind the attention. AllenNLP has it at the input only, without penalty.
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('both', {
  bilm: 'runs/bilm',
  mix: { type: 'scalar_mix', l2: 0.001 },  // paper
  // AllenNLP: the dropout of all vectors at the input follows at once. The paper drops half of ELMo.
  dropout: 0.0,
}) + {
  model+: { output_embedder+: { dropout: 0.5 } },  // paper; no other dropout follows there
}
