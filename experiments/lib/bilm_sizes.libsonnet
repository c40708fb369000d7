// Sizes of the published biLMs and of `mini`, as parts of a model of type `bilm`:
//
//   model: sizes.small { type: 'bilm', ... }
//
// Source: the options.json files published with the paper. Parameters without the softmax:
// mini 5,379,920, small 13,593,296, medium 28,027,728, original 93,600,848.
local size(cell_size, projection_dim, num_highway) = {
  token_encoder: {
    type: 'char_cnn',
    embedding_dim: 16,
    filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
    num_highway: num_highway,
    projection_dim: projection_dim,
    activation: 'relu',
    max_characters_per_token: 50,
  },
  context_layers: {
    type: 'elmo_lstm',
    cell_size: cell_size,
    projection_dim: projection_dim,
    num_layers: 2,
    cell_clip: 3.0,
    projection_clip: 3.0,
    use_skip_connections: true,
    // Applied to the input of each layer, in pretraining only; `dropout` in the published files.
    dropout: 0.1,
  },
};
{
  // Our own size: small with a quarter of the filters.
  mini: self.small {
    token_encoder+: {
      filters: [[1, 8], [2, 8], [3, 16], [4, 32], [5, 64], [6, 128], [7, 256]],
    },
    context_layers+: { dropout: 0.0 },
  },
  small: size(1024, 128, 1),
  medium: size(2048, 256, 1),
  original: size(4096, 512, 2),
}
