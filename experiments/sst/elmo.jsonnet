// The baseline with ELMo at the input of the first encoder and at the output, which follows the
// attention in this model. AllenNLP has ELMo at the input only, without a penalty.
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('both', {
  bilm: 'runs/bilm',
  mix: { type: 'scalar_mix', l2: 0.001 },  // paper
  // AllenNLP: the dropout of all input vectors follows directly. The paper has 0.5 for ELMo.
  dropout: 0.0,
}) + {
  model+: { output_embedder+: { dropout: 0.5 } },  // paper; no other dropout follows here
}
