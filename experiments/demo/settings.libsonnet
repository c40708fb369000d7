// Settings for the taggers of experiments/ner: train on this folder, without files of word vectors.
{
  train_data_path: 'experiments/demo/train.txt',
  validation_data_path: 'experiments/demo/valid.txt',
  model+: { embedder+: { token_embedders+: { tokens+: { pretrained_file: null, min_count: 2 } } } },
  data_loader+: { batch_size: 16 },
  trainer+: { num_epochs: 10 },
}
