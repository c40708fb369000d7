// The baseline with ELMo beside the words' own vectors.
local elmo = import '../../experiments/lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('input', { bilm: 'runs/bilm', dropout: 0.5 })
