// A biLM of the training text of a task alone, 150,000 to 260,000 words: it reads them ten to
// seventeen times. For another language:
//
//   elmo train experiments/languages/task_text.jsonnet -s runs/languages/nl \
//     -o train_data_path=data/corpus/nl/training -o validation_data_path=data/corpus/nl/held_out
(import 'bilm.libsonnet') + {
  corpus:: 'data/corpus/es',
  model+: { dropout: 0.1, context_layers+: { dropout: 0.1 } },
  trainer+: {
    num_steps: 2000,
    learning_rate_scheduler+: { warmup_steps: 100 },
    evaluate_every: { steps: 200 },
    patience: 3,
  },
}
