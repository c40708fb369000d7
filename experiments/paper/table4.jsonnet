// Table 4: are the nearest occurrences of a word in context of the same sense?
//
//   elmo study experiments/paper/table4.jsonnet -s runs/table4 --final
//
// purity@10 over 50 lemmas of SemCor: the ratio of the ten nearest occurrences of the same lemma that
// have its sense. `prior` in the scores is that of random neighbors. Nothing is trained or chosen, so
// development and test data are the same. Another biLM: (import 'table4.jsonnet') { bilm:: 'original' }.
local table5 = import 'table5.jsonnet';
local semcor = 'data/semcor/semcor30.jsonl';
{
  local study = self,
  local layers = table5 { bilm:: study.bilm },
  bilm:: 'mini',
  configs: {
    neighbors: {
      config: (import '../wsd/elmo.jsonnet') {
        dataset_reader: { type: 'semcor_lemmas' },
        validation_dataset_reader: self.dataset_reader,
        validation_data_path: semcor,
        test_data_path: semcor,
        model+: { type: 'sense_neighbors' },
        data_loader: { batch_size: 1 },
        trainer+: { validation_metric: '+purity' },
      },
    },
  },
  variants: {
    glove: layers.glove,
    layer0: layers.layer({ type: 'layer', index: 0 }),
    layer1: layers.layer({ type: 'layer', index: 1 }),
    layer2: layers.layer({ type: 'layer', index: 2 }),
    average: layers.layer('average'),
  },
  seeds: [1],
  comparisons: [['layer1', 'layer0'], ['layer2', 'layer0'], ['layer1', 'glove'], ['average', 'layer0']],
}
