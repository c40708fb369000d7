// Five classes of sentiment on SST without ELMo: the biattentive classification network (McCann et
// al. 2017) as in the ELMo paper. Comments give the source of each value: the paper, AllenNLP's
// biattentive_classification_network_elmo.jsonnet, or both.
local lstm = { type: 'lstm', hidden_size: 300, num_layers: 1, bidirectional: true };  // both
{
  // Paper: sentences and their phrases of at least four words. AllenNLP: all phrases.
  dataset_reader: { type: 'sst_tokens', use_subtrees: true, min_phrase_length: 4 },
  validation_dataset_reader: { type: 'sst_tokens' },  // both: sentences only
  train_data_path: 'data/sst/train.txt',
  validation_data_path: 'data/sst/dev.txt',
  // AllenNLP: words that occur only in the development data have their vectors too; none are
  // trained.
  datasets_for_vocab_creation: ['train', 'validation'],
  model: {
    type: 'bcn',
    embedder: {
      token_embedders: {
        // Both: GloVe 840B, 300 dimensions, not trained.
        tokens: {
          type: 'embedding',
          embedding_dim: 300,
          pretrained_file: 'data/glove/glove.840B.300d.txt',
          trainable: false,
        },
      },
    },
    embedding_dropout: 0.5,  // AllenNLP
    // Both; the dropout is AllenNLP's.
    pre_encode_feedforward: { num_layers: 1, hidden_dims: 300, activations: 'relu', dropout: 0.25 },
    encoder: lstm,
    integrator: lstm,
    integrator_dropout: 0.1,  // AllenNLP
    // Paper: two layers with ReLU and dropout replace maxout. Sizes and dropout are those of
    // AllenNLP, which has { type: 'maxout', output_dims: [1200, 600], dropout: [0.2, 0.3] }.
    output_layer: {
      type: 'feedforward',
      num_layers: 2,
      hidden_dims: [1200, 600],
      activations: 'relu',
      dropout: [0.2, 0.3],
    },
  },
  data_loader: { batch_size: 100, bucketing: true },  // AllenNLP
  trainer: {
    optimizer: { type: 'adam', lr: 0.0001 },  // paper; AllenNLP 0.001
    grad_norm: 5.0,  // AllenNLP
    num_epochs: 40,  // AllenNLP
    patience: 5,  // AllenNLP
    validation_metric: '+accuracy',
  },
}
