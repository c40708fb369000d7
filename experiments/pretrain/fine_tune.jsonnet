// Continue to train a biLM for one pass over the text of a domain, as for most tasks of the paper
// (section 3.4 and appendix). No labels are read, and the vocabulary does not change.
//
//   elmo train experiments/pretrain/fine_tune.jsonnet -s runs/mini-domain \
//     -o train_data_path=... -o validation_data_path=...
//
// Then write `bilm: 'runs/mini-domain'` in the config of a task. To continue from your own run,
// including its optimizer state, name its folder: -o init_from.path=runs/mini. The model must be
// the same: replace the model of mini below by yours.
(import 'mini.jsonnet') + {
  init_from: { path: 'mini', reset_optimizer: false },
  dataset_reader: { type: 'language_modeling' },
  validation_dataset_reader: null,
  train_data_path: 'data/domain/train.txt',
  validation_data_path: 'data/domain/valid.txt',
  // Small batches for little text: one pass should have at least some hundred updates.
  data_loader+: { batch_size: 16 },
  trainer+: {
    num_epochs: 1,  // paper; bilm-tf: at most a few epochs of less than 10 M words
    optimizer+: { lr: 0.001 },
    // Warm up for a tenth of the pass: exported biLMs have no optimizer state.
    learning_rate_scheduler: { type: 'slanted_triangular' },
    evaluate_at_start: true,  // perplexity before training, for comparison
    evaluate_every: { epochs: 1 },
    checkpointer: {},
  },
}
