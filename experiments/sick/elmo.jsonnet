// The baseline with ELMo at the input and at the output of the first encoder. The biLM `mini` is in
// the package; a run or a folder of yours takes its place with -o or here.
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('both', { bilm: 'mini' })
