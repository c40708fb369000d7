// Semantic roles without ELMo: the labeler of He et al. (2017), eight highway LSTMs of alternating
// direction. Comments give the source of each value: the paper (of He et al., with their code) or
// AllenNLP's labeler.
{
  // PropBank over EWT in the columns of CoNLL-2012. For OntoNotes, which needs a license, write a
  // pattern of its files: 'conll-2012/v4/data/train/**/*gold_conll'.
  dataset_reader: { type: 'srl', max_sentence_length: 100 },  // code of He et al., in training only
  validation_dataset_reader: { type: 'srl' },
  train_data_path: 'data/ewt/srl/train.gold_conll',
  validation_data_path: 'data/ewt/srl/dev.gold_conll',
  model: {
    type: 'srl',
    embedder: {
      token_embedders: {
        // Paper and AllenNLP: GloVe 6B, 100 dimensions, trained. Without a file, use null and
        // `min_count: 2`: words that occur once then train the vector of unknown words.
        tokens: {
          type: 'embedding',
          embedding_dim: 100,
          pretrained_file: 'data/glove/glove.6B.100d.txt',
          lowercase: true,
        },
      },
    },
    binary_feature_dim: 100,  // paper and AllenNLP
    // Paper and AllenNLP: 8 layers of 300 with highways and dropout 0.1 of h. In AllenNLP, only the
    // next word reads h with dropout (`recurrent_dropout_place`). There, the highway's projection of
    // the input has a bias, but not in the paper.
    encoder: {
      type: 'alternating_lstm',
      hidden_size: 300,
      num_layers: 8,
      recurrent_dropout_probability: 0.1,
      use_highway: true,
      use_input_projection_bias: false,
    },
    // Code of He et al. AllenNLP has an orthogonal projection, which is the default here. The
    // encoder is initialized as in both: each gate orthonormal, biases 0, the forget gate's bias 1.
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
    patience: 200,  // paper, with ELMo; AllenNLP's baseline 20
    validation_metric: '+f1-measure-overall',  // paper and AllenNLP
  },
}
