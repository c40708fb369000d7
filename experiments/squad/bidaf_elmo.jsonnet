// Bi-directional attention flow with ELMo at its input, as AllenNLP has it.
local elmo = import '../lib/elmo.libsonnet';

(import 'bidaf.jsonnet') + elmo.at('input', {
  bilm: 'runs/bilm',
  dropout: 0.0,  // AllenNLP: the model's own dropout follows the encoder
})
