// Pretrain the biLM of the package. It is small enough for a CPU, and its float16 weights take less
// than 20 MB with the softmax.
//
//   elmo prepare TEXT... --output-dir data/corpus/lm-open --held-out 5000 \
//     --max-vocabulary-size 20000 --processes 2
//   torchrun --nproc-per-node 2 -m elmo_framework train experiments/pretrain/mini.jsonnet \
//     -s runs/mini -o trainer.precision=bfloat16
//
// Two processes with one thread each are faster than one process with two. bfloat16 saves a quarter
// of the time on CPUs that support it (AVX512-BF16, AMX), and is slow on others.
//
// The size is the published small size with a quarter of its filters. The training settings are for
// a single pass over tens of millions of words.
local sizes = import '../lib/bilm_sizes.libsonnet';
{
  dataset_reader: { type: 'prepared_corpus' },
  train_data_path: 'data/corpus/lm-open/training',
  // A perplexity over about 35,000 words is precise enough, and takes seconds.
  validation_dataset_reader: { type: 'prepared_corpus', max_instances: 1500 },
  validation_data_path: 'data/corpus/lm-open/held_out',
  model: sizes.mini {
    type: 'bilm',
    dropout: 0.0,  // each sentence is read once, so there is no overfitting
    max_vocabulary_size: 20000,
    num_samples: 4096,  // half the time per step of the full softmax
    state_reset_rate: 0.05,  // needed for short training: docs/decisions/zero_state.md
  },
  data_loader: { type: 'windows', batch_size: 64, unroll_steps: 20 },
  trainer: {
    // With few updates, Adam is better than the paper's Adagrad, and a learning rate that decays to
    // 0 is better than a constant one.
    optimizer: { type: 'adam', lr: 0.002 },
    learning_rate_scheduler: { type: 'linear_with_warmup', warmup_steps: 1000 },
    grad_norm: 10.0,
    num_epochs: 1,
    evaluate_every: { steps: 2000 },
    validation_metric: '-perplexity',
    checkpointer: { save_every: { steps: 1000, minutes: 10 } },
  },
  random_seed: 13370,
}
