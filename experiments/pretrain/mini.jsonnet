// Pretrains the biLM that ships with the package: small enough for a CPU, and for 20 MB of
// float16 numbers with its softmax.
//
//   elmo prepare TEXT... --output-dir data/corpus/lm-open --held-out 5000 \
//     --max-vocabulary-size 20000 --processes 2
//   torchrun --nproc-per-node 2 -m elmo_framework train experiments/pretrain/mini.jsonnet \
//     -s runs/mini -o trainer.precision=bfloat16
//
// Two processes with a thread each are faster than one with two. bfloat16 saves a quarter of the time
// on processors that compute with it (AVX512-BF16, AMX), and is slow on others.
//
// The shape is the published small size with a quarter of its filters; the recipe is a modern one,
// for a single pass over some tens of millions of words.
local sizes = import '../lib/bilm_sizes.libsonnet';
{
  dataset_reader: { type: 'prepared_corpus' },
  train_data_path: 'data/corpus/lm-open/training',
  // A perplexity over some 35,000 words says enough, and takes seconds.
  validation_dataset_reader: { type: 'prepared_corpus', max_instances: 1500 },
  validation_data_path: 'data/corpus/lm-open/held_out',
  model: sizes.mini {
    type: 'bilm',
    dropout: 0.0,  // each sentence is read once: there is nothing to learn by heart
    max_vocabulary_size: 20000,
    num_samples: 4096,  // a step takes half the time of one with the full softmax
    state_reset_rate: 0.05,  // against a trap of short training; see docs/decisions/zero_state.md
  },
  data_loader: { type: 'windows', batch_size: 64, unroll_steps: 20 },
  trainer: {
    // In few updates Adam gets further than the paper's Adagrad; a rate that falls to 0 at the end
    // of the pass takes more out of it than a constant one.
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
