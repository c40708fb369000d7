// Bi-directional attention flow with ELMo at its input, as in AllenNLP.
local elmo = import '../lib/elmo.libsonnet';

(import 'bidaf.jsonnet') + elmo.at('input', {
  bilm: 'runs/bilm',
  dropout: 0.0,  // AllenNLP: the dropout of the model follows the encoder
})
