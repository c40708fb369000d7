// The tagger of the demo without ELMo and with `mini`, three seeds of each.
local elmo = import '../lib/elmo.libsonnet';

{
  configs: {
    ner: {
      config: (import 'baseline.jsonnet') + { test_data_path: 'experiments/demo/test.txt' },
      variants: {
        none: {},
        mini: { model: ((import 'baseline.jsonnet') + elmo.at('input', { bilm: 'mini' })).model },
      },
    },
  },
  seeds: [1, 2, 3],
  comparisons: [['mini', 'none']],
}
