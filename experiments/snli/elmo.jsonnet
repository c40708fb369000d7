// The baseline with ELMo at the input and at the output of the first encoder, and with the
// regularization that the paper adds with it.
local elmo = import '../lib/elmo.libsonnet';

(import 'baseline.jsonnet') + elmo.at('both', {
  bilm: 'runs/bilm',
  mix: { type: 'scalar_mix', layer_norm: true, l2: 0.001 },  // paper; AllenNLP has neither
  dropout: 0.5,  // paper; AllenNLP 0, because the dropout of the model follows directly
}) + {
  model+: {
    attention_dropout: 0.5,  // paper, with ELMo only
    // Paper, with ELMo only: an L2 penalty of 0.0001 on the recurrent and the feed-forward weight
    // matrices; half of it here, because TensorFlow's penalty is half the sum of squares.
    regularizer: [
      ['lstm.weight|(linear_layers.*|output_logit.)weight', { type: 'l2', alpha: 0.00005 }],
    ],
  },
}
