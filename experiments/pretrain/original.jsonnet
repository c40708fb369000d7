// Pretrains a biLM of the original size with the recipe of the paper's authors: the settings of
// their TensorFlow code (bilm-tf), as published in options.json or written in its source.
//
//   elmo train experiments/pretrain/original.jsonnet -s runs/bilm
//
// Give it text that is tokenized, one sentence a line: a folder of shards to train on, a file to
// evaluate on. The paper's text is the 1B Word Benchmark, on three GPUs:
//
//   torchrun --nproc-per-node 3 -m elmo_framework train ... -s runs/bilm
local sizes = import '../lib/bilm_sizes.libsonnet';
{
  dataset_reader: { type: 'language_modeling' },
  train_data_path: 'data/lm/train',
  validation_data_path: 'data/lm/valid.txt',
  model: sizes.original {
    type: 'bilm',
    dropout: 0.1,  // options.json; here of the top layer, before the softmax
    num_samples: 8192,  // options.json: n_negative_samples_batch
    state_reset_rate: 0.0,  // bilm-tf: states start from zeros once, before the first update
    // The vocabulary file of the benchmark: 793,471 lines, the words seen three times or more.
    min_count: 3,
  },
  data_loader: {
    type: 'windows',
    batch_size: 128,  // options.json; rows of each GPU
    unroll_steps: 20,  // options.json
    aligned: false,  // bilm-tf: each direction has an order of sentences of its own
  },
  trainer: {
    optimizer: {
      type: 'adagrad',
      lr: 0.2,  // bilm-tf's default; options.json does not change it
      initial_accumulator_value: 1.0,  // bilm-tf
      eps: 0.0,  // TensorFlow's Adagrad adds nothing to the root
    },
    learning_rate_scheduler: 'constant',  // bilm-tf: no decay
    grad_norm: 10.0,  // options.json: all_clip_norm_val, the norm of all gradients together
    num_epochs: 10,  // the paper, section 3.4
    // An epoch of the benchmark is 104,029 updates on three GPUs (100,084 by bilm-tf, which leaves
    // sentence ends out of its count). Its training never evaluates; a script of its own does.
    evaluate_every: { steps: 10000, epochs: 1 },
    validation_metric: '-perplexity',
    checkpointer: {
      save_every: { steps: 1250 },  // bilm-tf
      keep_most_recent_by_count: 2,  // bilm-tf
    },
  },
  random_seed: 13370,
}
