// Entailment on SNLI without ELMo: ESIM (Chen et al. 2017) as in the ELMo paper. Comments give the
// source of each value: the paper, AllenNLP's esim_elmo.jsonnet, or both.
local lstm = { type: 'lstm', hidden_size: 300, num_layers: 1, bidirectional: true };  // both
{
  dataset_reader: { type: 'snli', tokenizer: 'spacy' },
  train_data_path: 'data/snli/snli_1.0_train.jsonl',
  validation_data_path: 'data/snli/snli_1.0_dev.jsonl',
  // AllenNLP: words that occur only in the development data have their vectors too; none are
  // trained.
  datasets_for_vocab_creation: ['train', 'validation'],
  model: {
    type: 'esim',
    embedder: {
      token_embedders: {
        // Paper: GloVe 840B, 300 dimensions, not trained. AllenNLP's ESIM with ELMo has no GloVe.
        tokens: {
          type: 'embedding',
          embedding_dim: 300,
          pretrained_file: 'data/glove/glove.840B.300d.txt',
          trainable: false,
        },
      },
    },
    encoder: lstm,
    projection_feedforward: { num_layers: 1, hidden_dims: 300, activations: 'relu' },  // both
    inference_encoder: lstm,
    // Both. Chen et al. have tanh; the paper replaces it.
    output_feedforward: { num_layers: 1, hidden_dims: 300, activations: 'relu', dropout: 0.5 },
    dropout: 0.5,  // both
    // AllenNLP. The paper does not specify this.
    initializer: [
      ['(linear_layers.*|output_logit.)weight', 'xavier_uniform'],
      ['(linear_layers.*|output_logit.)bias', 'zero'],
      ['weight_ih', 'xavier_uniform'],
      ['weight_hh', 'orthogonal'],
      ['bias_ih', 'zero'],
      ['bias_hh', 'lstm_hidden_bias'],
    ],
  },
  data_loader: { batch_size: 32, bucketing: true },  // both
  trainer: {
    optimizer: { type: 'adam', lr: 0.0004 },  // both
    // Both: halved as soon as the accuracy does not improve.
    learning_rate_scheduler: { type: 'reduce_on_plateau', factor: 0.5, patience: 0 },
    grad_norm: 5.0,  // paper; AllenNLP 10
    num_epochs: 75,  // AllenNLP
    patience: 5,  // AllenNLP
    validation_metric: '+accuracy',
  },
}
