// What a lower precision of the frozen biLM costs: a tenth of the training data, `mini`.
//
//   elmo study experiments/ner/precision.jsonnet -s runs/precision
local tagger = (import 'elmo.jsonnet') + (import 'small.libsonnet');
local in_precision(name) = { 'model.embedder.token_embedders.elmo.precision': name };
{
  configs: {
    ner: {
      config: tagger + {
        model+: { embedder+: { token_embedders+: { elmo+: { bilm: 'mini' } } } },
        trainer+: { num_epochs: 12 },
      },
      variants: {
        float32: {},
        bfloat16: in_precision('bfloat16'),
        int8: in_precision('int8'),
      },
    },
  },
  seeds: [1, 2, 3],
  fractions: [0.1],
  comparisons: [['bfloat16', 'float32'], ['int8', 'float32']],
}
