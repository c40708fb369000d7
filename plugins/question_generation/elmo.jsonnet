// The baseline with ELMo, concatenated to the word vectors.
local elmo = import '../../experiments/lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('input', { bilm: 'mini', dropout: 0.3 })
