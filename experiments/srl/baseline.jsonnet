// Semantic roles without ELMo: the labeler of He et al. (2017), eight highway LSTMs that alternate
// in direction. Each number is the paper's, that is of He et al. and their code, or that of
// AllenNLP's labeler, as the comment beside it says.
{
  // PropBank over EWT in the columns of CoNLL-2012. For OntoNotes itself, which is licensed, name
  // its files by a pattern: 'conll-2012/v4/data/train/**/*gold_conll'.
  dataset_reader: { type: 'srl', max_sentence_length: 100 },  // code of He et al., in training only
  validation_dataset_reader: { type: 'srl' },
  train_data_path: 'data/ewt/srl/train.gold_conll',
  validation_data_path: 'data/ewt/srl/dev.gold_conll',
  model: {
    type: 'srl',
    embedder: {
      token_embedders: {
        // Paper and AllenNLP: GloVe 6B, 100 dimensions, trained on. Without a file, null in its
        // place and `min_count: 2`: words seen once then train the vector of the unknown ones.
        tokens: {
          type: 'embedding',
          embedding_dim: 100,
          pretrained_file: 'data/glove/glove.6B.100d.txt',
          lowercase: true,
        },
      },
    },
    binary_feature_dim: 100,  // paper and AllenNLP
    // Paper and AllenNLP: 8 layers of 300 with highways, a tenth of h dropped. AllenNLP's product of
    // the carried input has a bias here; the paper's has none.
    encoder: {
      type: 'alternating_lstm',
      hidden_size: 300,
      num_layers: 8,
      recurrent_dropout_probability: 0.1,
      use_highway: true,
      use_input_projection_bias: false,
    },
    // Code of He et al.; AllenNLP has an orthogonal projection, which is what it is without this.
    // The encoder starts as in both: each gate orthonormal, biases 0, that of the forget gate 1.
    initializer: [
      ['^predicate_embedding|^projection.weight', { type: 'normal', std: 0.01 }],
      ['^projection.bias', 'zero'],
    ],
  },
  data_loader: { batch_size: 80, bucketing: true },  // paper and AllenNLP
  trainer: {
    // Paper and AllenNLP.
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95, eps: 1e-6 },
    grad_norm: 1.0,  // paper; AllenNLP clips each value at 1 instead: grad_clipping
    num_epochs: 500,  // paper and AllenNLP
    patience: 200,  // the paper's with ELMo; AllenNLP's baseline waits for 20
    validation_metric: '+f1-measure-overall',  // paper and AllenNLP
  },
}
