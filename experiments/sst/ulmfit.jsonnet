// Five classes of sentiment on SST by ULMFiT (Howard and Ruder 2018): a language model is fine-tuned
// on the sentences of the task, and then with a classifier on top.
//
//   elmo train experiments/pretrain/fine_tune.jsonnet -s runs/mini-sst \
//     -o train_data_path=data/domain/sst/train.txt -o validation_data_path=data/domain/sst/valid.txt \
//     -o 'trainer.unfreezing={"epochs_per_layer": 0, "layer_decay": 0.38}'
//   elmo train experiments/sst/ulmfit.jsonnet -s runs/sst-ulmfit
//
// Values are those of the paper (section 4.1). Differences from it: one bidirectional model instead
// of two classifiers, dropout outside the LSTM only, no batch normalization, and a smaller rate.
{
  dataset_reader: { type: 'sst_tokens' },
  train_data_path: 'data/sst/train.txt',
  validation_data_path: 'data/sst/dev.txt',
  model: {
    type: 'basic_classifier',
    embedder: {
      token_embedders: {
        elmo: {
          type: 'elmo_token_embedder',
          bilm: 'runs/mini-sst',
          requires_grad: true,
          mix: { type: 'layer', index: -1 },
          dropout: 0.4,
        },
      },
    },
    pooler: { type: 'concat_pooling' },
    feedforward: { num_layers: 1, hidden_dims: 50, activations: 'relu', dropout: 0.4 },
  },
  data_loader: { batch_size: 64, bucketing: true },
  trainer: {
    // Paper: 0.01, with batch normalization. Without it, all units of the feedforward layer die.
    optimizer: { type: 'adam', lr: 0.001, betas: [0.7, 0.99] },
    learning_rate_scheduler: { type: 'slanted_triangular', cut_frac: 0.1, ratio: 32 },
    // The head is trained for one epoch, then the top layer too, and so on: all from the fourth.
    unfreezing: { epochs_per_layer: 1, layer_decay: 1 / 2.6 },
    num_epochs: 10,  // not in the paper: until convergence
    validation_metric: '+accuracy',
  },
}
