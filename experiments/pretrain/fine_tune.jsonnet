// Goes on with a pretrained biLM for one pass over the text of a domain, as was done for most tasks
// of the paper (section 3.4 and its appendix): no labels are read, the vocabulary stays.
//
//   elmo train experiments/pretrain/fine_tune.jsonnet -s runs/mini-domain \
//     -o train_data_path=... -o validation_data_path=...
//
// `bilm: 'runs/mini-domain'` in the config of a task then takes it in place of the general one.
// To go on with a run of your own, and with what its optimizer has gathered, name its folder:
// -o init_from.path=runs/mini. The model has to be the same; give its config in place of mini's.
(import 'mini.jsonnet') + {
  init_from: { path: 'mini', reset_optimizer: false },
  dataset_reader: { type: 'language_modeling' },
  validation_dataset_reader: null,
  train_data_path: 'data/domain/train.txt',
  validation_data_path: 'data/domain/valid.txt',
  // Little text, so smaller batches: some hundred updates are what one pass should have at least.
  data_loader+: { batch_size: 16 },
  trainer+: {
    num_epochs: 1,  // the paper; of less than 10 M words a few epochs at most, says bilm-tf
    optimizer+: { lr: 0.001 },
    // The first tenth of the pass at a smaller rate: a biLM in two files has no optimizer's state.
    learning_rate_scheduler: { type: 'slanted_triangular' },
    evaluate_at_start: true,  // the perplexity before, for comparison
    evaluate_every: { epochs: 1 },
    checkpointer: {},
  },
}
