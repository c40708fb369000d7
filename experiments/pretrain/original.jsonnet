// Pretrain a biLM of the original size with the settings of the paper's authors: those of their
// TensorFlow code (bilm-tf), from the published options.json or from its source.
//
//   elmo train experiments/pretrain/original.jsonnet -s runs/bilm
//
// The text is tokenized, with one sentence per line: a folder of shards for training, a file for
// evaluation. The paper used the 1B Word Benchmark on three GPUs:
//
//   torchrun --nproc-per-node 3 -m elmo_framework train ... -s runs/bilm
local sizes = import '../lib/bilm_sizes.libsonnet';
{
  dataset_reader: { type: 'language_modeling' },
  train_data_path: 'data/lm/train',
  validation_data_path: 'data/lm/valid.txt',
  model: sizes.original {
    type: 'bilm',
    dropout: 0.1,  // options.json; applied to the top layer, before the softmax
    num_samples: 8192,  // options.json: n_negative_samples_batch
    state_reset_rate: 0.0,  // bilm-tf: states start from zeros once, before the first update
    // The vocabulary file of the benchmark: 793,471 words that occur at least three times.
    min_count: 3,
  },
  data_loader: {
    type: 'windows',
    batch_size: 128,  // options.json; rows per GPU
    unroll_steps: 20,  // options.json
    aligned: false,  // bilm-tf: each direction has a different order of sentences
  },
  trainer: {
    precision: 'auto',  // bfloat16 on a GPU that has it
    optimizer: {
      type: 'adagrad',
      lr: 0.2,  // bilm-tf's default; options.json does not change it
      initial_accumulator_value: 1.0,  // bilm-tf
      eps: 0.0,  // TensorFlow's Adagrad adds nothing to the root
    },
    learning_rate_scheduler: 'constant',  // bilm-tf: no decay
    grad_norm: 10.0,  // options.json: all_clip_norm_val, the norm of all gradients together
    num_epochs: 10,  // the paper, section 3.4
    // An epoch of the benchmark is 104,029 updates on three GPUs (100,084 in bilm-tf, which does
    // not count sentence ends). bilm-tf never evaluates during training; it has a separate script.
    evaluate_every: { steps: 10000, epochs: 1 },
    validation_metric: '-perplexity',
    checkpointer: {
      // bilm-tf: every 1,250 updates, which are seconds on one GPU of today.
      save_every: { minutes: 15 },
      keep_most_recent_by_count: 2,  // bilm-tf
    },
  },
  random_seed: 13370,
}
