// Table 3 of the paper: ELMo at the input of the encoder, at its output, and at both.
//
//   elmo study experiments/paper/table3.jsonnet -s experiments/results/table3
local paper = import 'lib.libsonnet';
{
  size:: 'small',
  local bilm = paper.with({ bilm: paper.bilm[$.size] }),
  configs: {
    [task]: {
      config: paper.baseline($.size, task),
      variants: {
        [place]: paper.elmo_at($.size, task, place, bilm)
        for place in ['input', 'both', 'output']
      },
    }
    for task in ['squad', 'snli', 'srl']
  },
  seeds: [1, 2, 3],
  comparisons: [['both', 'input'], ['both', 'output'], ['input', 'output']],
}
