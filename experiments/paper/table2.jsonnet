// Table 2 of the paper: which layers, and how much the layer weights may differ.
//
//   elmo study experiments/paper/table2.jsonnet -s experiments/results/table2
local paper = import 'lib.libsonnet';
{
  size:: 'small',
  local with(task, mix) = paper.elmo($.size, task, paper.with({ bilm: paper.bilm[$.size] } + mix)),
  configs: {
    [task]: {
      config: paper.baseline($.size, task),
      variants: {
        baseline: {},
        top: with(task, { mix: { type: 'layer', index: -1 } }),
        all_1: with(task, { mix+: { l2: 1.0 } }),  // lambda = 1: nearly an average
        all_0_001: with(task, { mix+: { l2: 0.001 } }),
      },
    }
    for task in ['squad', 'snli', 'srl']
  },
  seeds: [1, 2, 3],
  comparisons: [['top', 'baseline'], ['all_1', 'top'], ['all_0_001', 'all_1']],
}
