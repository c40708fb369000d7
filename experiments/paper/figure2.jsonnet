// Learning curves of SNLI and SRL over nested parts of the training data: Figure 1 of the published
// paper (its Figure 2 has the layer weights).
//
//   elmo study experiments/paper/figure2.jsonnet -s experiments/results/figure2
local paper = import 'lib.libsonnet';
{
  size:: 'small',
  local bilm = paper.bilm[$.size],
  // With the same limit of updates for each part, little data is read more often. Early stopping
  // ends most of these runs long before.
  local schedules = {
    snli: { num_epochs: null, num_steps: 6000, evaluate_every: { steps: 600 }, patience: 3 },
    srl: { num_epochs: null, num_steps: 4200, evaluate_every: { steps: 300 }, patience: 4 },
  },
  configs: {
    [task]: {
      config:
        paper.baseline($.size, task)
        + (if $.size == 'small' then { trainer+: schedules[task] } else {}),
      variants: {
        none: {},
        [bilm]: paper.elmo($.size, task, paper.with({ bilm: bilm })),
      },
    }
    for task in ['snli', 'srl']
  },
  fractions: [0.001, 0.01, 0.1, 1.0],
  seeds: [1, 2, 3],
  comparisons: [[bilm, 'none']],
}
