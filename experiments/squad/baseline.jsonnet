// SQuAD 1.1 without ELMo: bi-attention and self-attention, the model of Clark and Gardner (2018),
// the baseline of the ELMo paper. Values and initializers are those of its code
// (allenai/document-qa), which agrees with the paper except where a comment gives another value.
local uniform(bound) = { type: 'uniform', a: -bound, b: bound };
{
  dataset_reader: { type: 'squad' },
  train_data_path: 'data/squad/train-*.json',
  validation_data_path: 'data/squad/dev-*.json',
  // The vectors are fixed, so words of the development set can have theirs too.
  datasets_for_vocab_creation: ['train', 'validation'],
  model: {
    type: 'bidaf_self_attention',
    embedder: {
      token_embedders: {
        // GloVe 840B, not trained. Words are looked up as written, then in lower case. Words
        // without a vector have zeros.
        tokens: {
          type: 'embedding',
          embedding_dim: 300,
          pretrained_file: 'data/glove/glove.840B.300d.txt',
          trainable: false,
          case_fallback: true,
          missing: 'zeros',
        },
        // 20 dimensions, 100 filters of width 5, words truncated to 14. The original code reads
        // characters that occur 49 times or more, with dropout before the convolution. Here they
        // are bytes, with two boundary marks.
        token_characters: {
          type: 'character_encoding',
          embedding: { embedding_dim: 20 },
          encoder: { type: 'cnn', num_filters: 100, ngram_filter_sizes: [5] },
          dropout: 0.2,
          max_characters_per_token: 16,
        },
      },
    },
    // 90 in the runs with ELMo, used for both here; 100 in the original runs without ELMo.
    encoder: { type: 'gru', hidden_size: 90, bidirectional: true },
    residual_encoder: { type: 'gru', hidden_size: 90, bidirectional: true },
    span_start_encoder: { type: 'gru', hidden_size: 90, bidirectional: true },
    span_end_encoder: { type: 'gru', hidden_size: 90, bidirectional: true },
    projection_dim: 180,
    dropout: 0.2,
    max_span_length: 17,
    initializer: [
      ['token_characters.embedding', uniform(0.05)],
      ['convolutions.*weight', 'xavier_uniform'],
      ['convolutions.*bias', uniform(std.sqrt(3 / 100))],
      ['gru.weight', { type: 'truncated_normal', std: 0.05 }],
      ['gru.bias', 'zero'],
      // The three vectors of a score: uniform from +-sqrt(3 / dimension).
      ['score.weight', { type: 'kaiming_uniform', nonlinearity: 'linear' }],
      ['(_projection|^start|^end).weight', 'xavier_uniform'],
      ['_projection.bias', 'zero'],
    ],
  },
  data_loader: { batch_size: 45, bucketing: true },
  trainer: {
    // The original code sets only the learning rate; rho and eps are TensorFlow's defaults.
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95, eps: 1e-8 },
    moving_average: { decay: 0.999 },
    num_epochs: 24,  // 26 in the original runs without ELMo
    evaluate_every: { steps: 1200 },
    validation_metric: '+f1',
  },
}
