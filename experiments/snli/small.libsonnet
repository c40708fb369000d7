// Laid over either configuration, minutes on two cores:
//
//   (import 'elmo.jsonnet') + (import 'small.libsonnet')
//
// The data is the part of SNLI that can be had without a request, and GloVe's smallest vectors.
{
  train_data_path: 'data/snli/snli_1.0_train_subset.jsonl',
  model+: {
    embedder+: {
      token_embedders+: {
        tokens+: {
          embedding_dim: 50,
          pretrained_file: 'data/glove/glove.6B.50d.top100k.txt',
          lowercase: true,  // as its words are
        },
      },
    },
    encoder+: { hidden_size: 100 },
    projection_feedforward+: { hidden_dims: 100 },
    inference_encoder+: { hidden_size: 100 },
    output_feedforward+: { hidden_dims: 100 },
  },
  trainer+: { num_epochs: 6, patience: 4 },
}
