// Relatedness of pairs of sentences on SICK, from 1 to 5, without ELMo: ESIM (Chen et al. 2017)
// with a number in place of labels. All of SICK is one file, whose column SemEval_set has the
// split: `only` selects it. The sizes are for two cores.
local reader = {
  type: 'pair_regression_json',
  premise_key: 'sentence_A',
  hypothesis_key: 'sentence_B',
  value_key: 'relatedness_score',
};
local lstm = { type: 'lstm', hidden_size: 100, num_layers: 1, bidirectional: true };
{
  dataset_reader: reader { only: { SemEval_set: 'TRAIN' } },
  validation_dataset_reader: reader { only: { SemEval_set: 'TRIAL' } },
  test_dataset_reader: reader { only: { SemEval_set: 'TEST' } },  // elmo evaluate RUN --test
  train_data_path: 'data/sick/SICK.txt',
  validation_data_path: 'data/sick/SICK.txt',
  test_data_path: 'data/sick/SICK.txt',
  model: {
    type: 'esim_regression',
    embedder: {
      token_embedders: {
        tokens: {
          type: 'embedding',
          embedding_dim: 50,
          pretrained_file: 'data/glove/glove.6B.50d.txt',
          lowercase: true,  // the file is in lower case
          trainable: false,
        },
      },
    },
    encoder: lstm,
    projection_feedforward: { num_layers: 1, hidden_dims: 100, activations: 'relu' },
    inference_encoder: lstm,
    output_feedforward: { num_layers: 1, hidden_dims: 100, activations: 'relu', dropout: 0.2 },
    dropout: 0.2,
  },
  data_loader: { batch_size: 32, bucketing: true },
  trainer: {
    optimizer: { type: 'adam', lr: 0.001 },
    learning_rate_scheduler: { type: 'reduce_on_plateau', factor: 0.5, patience: 1 },
    grad_norm: 5.0,
    num_epochs: 20,
    patience: 4,
    validation_metric: '+pearson',  // the official score of SemEval 2014, task 1
  },
}
