// Table 1 of the paper: six tasks without ELMo, with a control (a biLM with random weights), and
// with the pretrained biLM.
//
//   make random-bilm BILM=mini OUT=runs/mini-control TEXT=experiments/demo/lm_train.txt
//   elmo study experiments/paper/table1.jsonnet -s experiments/results/table1 --final
local paper = import 'lib.libsonnet';
{
  size:: 'small',
  local bilm = paper.bilm[$.size],
  local with_bilm(task, path) = paper.elmo($.size, task, paper.with({ bilm: path })),
  // Further columns for NER and SST: words as a character CNN of the tagger's size, without word
  // vectors. GloVe with 300 dimensions is in the baseline of SST in `full`, and a column of NER.
  local character_cnn = {
    type: 'character_encoding',
    embedding: { embedding_dim: 16 },
    encoder: {
      type: 'cnn',
      num_filters: if $.size == 'small' then 64 else 128,
      ngram_filter_sizes: [3],
      conv_layer_activation: 'relu',
    },
  },
  local characters = {
    characters: { 'model.embedder.token_embedders': { token_characters: character_cnn } },
  },
  local glove_300 = {
    glove_300: {
      model: {
        embedder: {
          token_embedders: {
            tokens: { embedding_dim: 300, pretrained_file: 'data/glove/glove.6B.300d.txt' },
          },
        },
      },
    },
  },
  local columns = {
    ner: characters + (if $.size == 'full' then glove_300 else {}),
    sst: characters,
  },
  configs: {
    [task]: {
      config: paper.baseline($.size, task),
      variants: {
        none: {},
        control: with_bilm(task, paper.control[$.size]),
        [bilm]: with_bilm(task, bilm),
      } + std.get(columns, task, {}),
    }
    for task in paper.tasks
  },
  seeds: [1, 2, 3, 4, 5],
  comparisons: [[bilm, 'none'], [bilm, 'control']],
}
