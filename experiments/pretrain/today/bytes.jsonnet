// The LSTM on plain bytes instead of characters: a GRU reads the bytes of a word from both sides.
// 612,992 parameters in the token encoder.
(import '../../lib/today.libsonnet') + {
  model+: {
    token_encoder: {
      type: 'bytes',
      embedding_dim: 32,
      sub_token_mode: 'gru',
      cell_size: 192,
      num_highway: 1,
      projection_dim: 128,
    },
  },
}
