// Laid over the taggers of experiments/ner: the sentences of this folder, no vectors from elsewhere.
{
  train_data_path: 'experiments/demo/train.txt',
  validation_data_path: 'experiments/demo/valid.txt',
  model+: { embedder+: { token_embedders+: { tokens+: { pretrained_file: null, min_count: 2 } } } },
  data_loader+: { batch_size: 16 },
  trainer+: { num_epochs: 10 },
}
