// Section 5 and the appendix of the paper: the depth of the biLM, a biLM that is trained with the
// task, and one that was fine-tuned on the text of the task. Train the biLMs of bilms.jsonnet first.
//
//   elmo study experiments/paper/appendix.jsonnet -s experiments/results/appendix
//
// The ensemble of five seeds needs no runs of its own, only those of Table 1:
//
//   RUNS=experiments/results/table1/runs/ner/mini
//   elmo evaluate $RUNS/fraction-0.1-seed-1 --ensemble $RUNS/fraction-0.1-seed-[2-5] --test
local paper = import 'lib.libsonnet';
{
  size:: 'small',
  local bilm = paper.bilm[$.size],
  local folder = if $.size == 'small' then 'experiments/results/bilms' else 'runs/full/bilms',
  local trained(name) = '%s/runs/%s/default/seed-1' % [folder, name],
  local with(task, changes) = paper.elmo($.size, task, paper.with(changes)),
  configs: {
    [task]: {
      config: paper.baseline($.size, task),
      variants: {
        none: {},
        depth_1: with(task, { bilm: trained('depth_1') }),
        depth_2: with(task, { bilm: trained('depth_2') }),
        depth_4: with(task, { bilm: trained('depth_4') }),
        frozen: with(task, { bilm: bilm }),
        tuned: with(task, { bilm: bilm, requires_grad: true }),
        fine_tuned: with(task, { bilm: trained(task) }),
      },
    }
    for task in ['ner', 'snli']
  },
  seeds: [1, 2, 3],
  comparisons: [['depth_2', 'depth_1'], ['depth_4', 'depth_2'], ['tuned', 'frozen'], ['fine_tuned', 'frozen']],
}
