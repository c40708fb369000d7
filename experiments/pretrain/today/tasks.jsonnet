// Named entities with a tenth and semantic roles with a fiftieth of the training data, without a
// biLM and with each biLM of this folder. NAME-2 and NAME-3 are trained with other seeds; the task
// always has the same seed, so that it reads the same examples.
//
//   elmo study experiments/pretrain/today/tasks.jsonnet -s runs/today/tasks
//   python benchmarks/today.py runs/today --study runs/today/tasks --exams exams
local elmo = import '../../lib/elmo.libsonnet';

local bilms = [
  'lstm',
  'gru',
  'linear_recurrence',
  'transformer',
  'masked_lm',
  'pieces',
  'bytes',
  'linear_recurrence-2',
  'linear_recurrence-3',
  'bytes-2',
  'bytes-3',
];
local task(baseline, small, fraction, trainer, options) = {
  config: baseline + small + { train_fraction: fraction, trainer+: trainer },
  variants: { none: {} } + {
    [bilm]: elmo.at('input', options { bilm: 'runs/today/' + bilm })
    for bilm in bilms
  },
};

{
  configs: {
    ner: task(
      import '../../ner/baseline.jsonnet',
      import '../../ner/small.libsonnet',
      0.1,
      { num_epochs: 60, evaluate_every: { epochs: 2 }, patience: 8 },
      { mix: { type: 'scalar_mix', l2: 0.1 }, dropout: 0.0 },
    ),
    srl: task(
      import '../../srl/baseline.jsonnet',
      import '../../srl/small.libsonnet',
      0.02,
      { num_epochs: 120, evaluate_every: { epochs: 8 }, patience: 4 },
      { mix: { type: 'scalar_mix', l2: 0.001 }, dropout: 0.1 },
    ),
  },
  seeds: [1],
  comparisons: [[bilm, 'lstm'] for bilm in bilms if bilm != 'lstm'],
}
