// The search for the settings of each `small.libsonnet`: on development data, without ELMo, and
// with one seed. `small` are the settings that were selected.
//
//   elmo study experiments/paper/baselines.jsonnet -s runs/paper/baselines
//
// The data and the fractions are those of table1.jsonnet.
local glove(options) = { model: { embedder: { token_embedders: { tokens: options } } } };
local encoder(size) = { model: { encoder: { hidden_size: size } } };
local learning_rate(value) = { trainer: { optimizer: { lr: value } } };
{
  seeds: [1],
  configs: {
    ner: {
      config: (import '../ner/baseline.jsonnet') + (import '../ner/small.libsonnet') + {
        train_fraction: 0.1,
      },
      variants: {
        small: {},
        // The sizes of AllenNLP's recipe.
        allennlp: encoder(200) + {
          model+: { embedder: { token_embedders: {
            token_characters: { encoder: { num_filters: 128 } },
          } } },
        },
        fixed_vectors: glove({ trainable: false }),
        less_dropout: { model: { dropout: 0.3, encoder: { dropout: 0.3 } } },
      },
    },
    sst: {
      config: (import '../sst/baseline.jsonnet') + (import '../sst/small.libsonnet'),
      variants: {
        small: {},
        fixed_vectors: glove({ trainable: false }),
        sentences: {
          dataset_reader: { use_subtrees: false },
          trainer: { num_epochs: 30 },
        },
        all_phrases: { dataset_reader: { min_phrase_length: 1 } },
        lower_rate: learning_rate(0.0004),
      },
    },
    snli: {
      config: (import '../snli/baseline.jsonnet') + (import '../snli/small.libsonnet'),
      variants: {
        small: {},
        trained_vectors: glove({ trainable: true }),
        more_dropout: { model: { dropout: 0.35, output_feedforward: { dropout: 0.35 } } },
        paper_rate: learning_rate(0.0004),
      },
    },
    srl: {
      config: (import '../srl/baseline.jsonnet') + (import '../srl/small.libsonnet') + {
        train_fraction: 0.02,
        trainer+: { num_epochs: 120, evaluate_every: { epochs: 8 }, patience: 4 },
      },
      variants: {
        small: {},
        two_layers: { model: { encoder: { num_layers: 2 } } },
        lower_rate: learning_rate(0.001),
        more_dropout: { model: { encoder: { recurrent_dropout_probability: 0.3 } } },
      },
    },
    squad: {
      config: (import '../squad/baseline.jsonnet') + (import '../squad/small.libsonnet'),
      variants: {
        small: {},
        lower_rate: learning_rate(0.001),
        more_dropout: { model: { dropout: 0.3 } },
      },
    },
    coreference: {
      config: (import '../coreference/baseline.jsonnet') + (import '../coreference/small.libsonnet'),
      variants: {
        small: {},
        larger_window: { model: { max_training_sentences: 50 } },
        less_dropout: { model: { lexical_dropout: 0.3 } },
        lower_rate: learning_rate(0.0005),
        fewer_spans: { model: { spans_per_word: 0.3 } },
      },
    },
  },
}
