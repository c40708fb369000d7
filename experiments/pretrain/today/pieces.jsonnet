// The LSTM on byte-level pieces instead of characters: the vector of a word is the mean of those of
// its pieces. 1,024,512 parameters in the token encoder, where that of characters has 645,000.
(import '../../lib/today.libsonnet') + {
  model+: {
    token_encoder: {
      type: 'pieces',
      pieces_file: 'data/corpus/today/pieces.json',
      embedding_dim: 128,
      sub_token_mode: 'mean',
    },
  },
}
