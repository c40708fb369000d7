// Coreference on CoNLL-2012 without ELMo: the span ranking model of Lee et al. (2017), the baseline
// of the ELMo paper. Comments give the source of each value: the code of Lee et al. (e2e-coref),
// AllenNLP's coref.jsonnet, or both.
local feedforward = { num_layers: 2, hidden_dims: 150, activations: 'relu', dropout: 0.2 };  // both
// Vectors are scaled to length 1. Words that are not in the file have zeros.
local vectors = { type: 'embedding', trainable: false, normalize: true, missing: 'zeros' };
// TensorFlow's default initializer of a bias of n values.
local glorot(n) = { type: 'uniform', a: -std.sqrt(3 / n), b: std.sqrt(3 / n) };
{
  dataset_reader: { type: 'coref' },
  train_data_path: 'data/conll2012/train.english.v4_gold_conll',
  validation_data_path: 'data/conll2012/dev.english.v4_gold_conll',
  // e2e-coref: words that occur only in the development data have their vectors too.
  datasets_for_vocab_creation: ['train', 'validation'],
  model: {
    type: 'coref',
    embedder: {
      token_embedders: {
        // e2e-coref: both files, concatenated. AllenNLP: only GloVe 6B with 300 dimensions.
        tokens: vectors { embedding_dim: 300, pretrained_file: 'data/glove/glove.840B.300d.txt' },
        turian: vectors { embedding_dim: 50, pretrained_file: 'data/turian/turian.50d.txt' },
        // e2e-coref. AllenNLP: 16 dimensions, 100 filters of width 5.
        token_characters: {
          type: 'character_encoding',
          embedding: { embedding_dim: 8 },
          encoder: {
            type: 'cnn',
            num_filters: 50,
            ngram_filter_sizes: [3, 4, 5],
            conv_layer_activation: 'relu',
          },
        },
      },
    },
    // e2e-coref: each sentence separately. AllenNLP: the document as one sequence ('document'). The
    // LSTM cell of e2e-coref has coupled gates, dropout 0.2 of h, and a learned initial state. This
    // one is PyTorch's.
    encoder: { type: 'lstm', hidden_size: 200, bidirectional: true },
    encoder_reads: 'sentence',
    mention_feedforward: feedforward,
    antecedent_feedforward: feedforward,
    feature_size: 20,  // both
    max_span_width: 10,  // both
    spans_per_word: 0.4,  // both
    max_antecedents: 250,  // e2e-coref; AllenNLP 100
    use_speakers: true,  // e2e-coref; AllenNLP has neither
    use_genre: true,
    max_training_sentences: 50,  // e2e-coref
    lexical_dropout: 0.5,  // both
    dropout: 0.2,  // both
    // e2e-coref: TensorFlow's default, except for the encoder, whose gates are orthonormal. There,
    // each gate is one matrix for the word and h together; here it is two. AllenNLP:
    // xavier_normal for the layers and weight_ih, orthogonal for weight_hh.
    initializer: [
      ['encoder.lstm.weight', 'block_orthogonal'],
      ['encoder.lstm.bias_ih', glorot(600)],  // e2e-coref has three gates
      ['encoder.lstm.bias_hh', 'zero'],  // e2e-coref has one bias
      ['(token_characters.|_)embedding', 'xavier_uniform'],
      ['(convolutions|linear_layers).*weight|(score|attention).weight', 'xavier_uniform'],
      ['convolutions.*bias', glorot(50)],
      ['linear_layers.*bias', glorot(150)],
      ['(score|attention).bias', glorot(1)],
    ],
  },
  data_loader: { batch_size: 1 },  // both
  trainer: {
    optimizer: { type: 'adam', lr: 0.001 },  // both
    // e2e-coref: times 0.999 every 100 steps, converted to an epoch of 2,802 documents. AllenNLP:
    // halved after two epochs without improvement.
    learning_rate_scheduler: { type: 'exponential', gamma: 0.9724 },
    grad_norm: 5.0,  // both
    num_epochs: 150,  // AllenNLP; e2e-coref about as many
    patience: 10,  // AllenNLP
    validation_metric: '+coref_f1',
  },
}
