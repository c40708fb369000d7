// Named entities of CoNLL-2003 without ELMo: words and their characters, two layers of LSTM, a CRF.
// Comments give the source of each value: the paper or AllenNLP's tagger.
{
  // The files are in IOB1 or BIO. BIOUL also marks the ends of spans.
  dataset_reader: { type: 'conll2003', tag_label: 'ner', coding_scheme: 'BIOUL' },
  train_data_path: 'data/conll2003/train.txt',
  validation_data_path: 'data/conll2003/valid.txt',
  model: {
    type: 'crf_tagger',
    dropout: 0.5,  // AllenNLP; the paper uses the same rate, with one mask for all words
    embedder: {
      token_embedders: {
        // AllenNLP: GloVe 6B, 50 dimensions, trained. Paper: Senna's vectors, 50 dimensions,
        // trained. Without a file, use null and `min_count: 2`: words that occur once then train
        // the vector of unknown words. Nothing else would.
        tokens: {
          type: 'embedding',
          embedding_dim: 50,
          pretrained_file: 'data/glove/glove.6B.50d.txt',
          lowercase: true,
        },
        // Paper and AllenNLP: 16 dimensions, 128 filters of width 3.
        token_characters: {
          type: 'character_encoding',
          embedding: { embedding_dim: 16 },
          encoder: {
            type: 'cnn',
            num_filters: 128,
            ngram_filter_sizes: [3],
            conv_layer_activation: 'relu',
          },
        },
      },
    },
    // AllenNLP; the paper has 200 units in the first layer and 100 in the second.
    encoder: { type: 'lstm', hidden_size: 200, num_layers: 2, bidirectional: true, dropout: 0.5 },
    // AllenNLP. All other parameters are initialized as in PyTorch, there and here. The paper does
    // not specify this.
    initializer: [['token_characters.embedding', 'xavier_uniform']],
  },
  data_loader: { batch_size: 64 },  // AllenNLP; with the loss a sum, it scales the learning rate
  trainer: {
    optimizer: { type: 'adam', lr: 0.001 },  // paper and AllenNLP
    grad_norm: 5.0,  // paper and AllenNLP
    num_epochs: 75,  // AllenNLP
    patience: 25,  // AllenNLP
    validation_metric: '+f1-measure-overall',
  },
}
