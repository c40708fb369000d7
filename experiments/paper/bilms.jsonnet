// The biLMs of appendix.jsonnet: one, two or four LSTM layers with the same number of parameters,
// and the pretrained biLM after one pass over the text of a task.
//
//   elmo study experiments/paper/bilms.jsonnet -s experiments/results/bilms
//
// experiments/README.md has the commands that make data/domain/snli from the training and the
// development data. That of NER:
//
//   mkdir -p data/domain/ner
//   for part in train valid; do
//     awk '$1 == "-DOCSTART-" { next } NF { line = line sep $1; sep = " " }
//          !NF && line { print line; line = sep = "" } END { if (line) print line }' \
//       data/conll2003/$part.txt > data/domain/ner/$part.txt
//   done
local paper = import 'lib.libsonnet';
local depths = {
  small: (import '../pretrain/tiny.jsonnet') + {
    // Four million words of novels; others for the perplexity.
    train_data_path: 'data/lm/shards/lm-00[0-3].txt',
    validation_dataset_reader: { type: 'language_modeling', max_instances: 1500 },
    validation_data_path: 'data/lm/shards/lm-030.txt',
    trainer+: { num_epochs: 1, max_minutes: null, evaluate_every: { epochs: 1 } },
  },
  full: import '../pretrain/small.jsonnet',
};
local one_pass = {
  small: import '../pretrain/fine_tune.jsonnet',  // of mini
  full: (import '../pretrain/fine_tune.jsonnet') + {
    init_from: { path: 'original', reset_optimizer: true },
    model: (import '../pretrain/original.jsonnet').model { min_count: 1 },
  },
};
{
  size:: 'small',
  local depth(num_layers) = {
    // The parameters of a layer are a multiple of its cells.
    local cells = depths[$.size].model.context_layers.cell_size * 2 / num_layers,
    config: depths[$.size] + {
      model+: { context_layers+: { num_layers: num_layers, cell_size: cells } },
    },
  },
  local fine_tuned(task) = {
    config: one_pass[$.size] + {
      train_data_path: 'data/domain/%s/train.txt' % task,
      validation_data_path: 'data/domain/%s/valid.txt' % task,
    },
  },
  configs: {
    depth_1: depth(1),
    depth_2: depth(2),
    depth_4: depth(4),
    ner: fine_tuned('ner'),
    snli: fine_tuned('snli'),
  },
  seeds: [1],
}
