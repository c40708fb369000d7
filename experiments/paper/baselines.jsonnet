// The search for the settings of each `small.libsonnet`: on development data, without ELMo, and
// with one seed. `small` are the settings that were selected.
//
//   elmo study experiments/paper/baselines.jsonnet -s experiments/results/baselines
//
// The data and the fractions are those of table1.jsonnet.
local paper = import 'lib.libsonnet';
local glove(options) = { model: { embedder: { token_embedders: { tokens: options } } } };
local encoder(size) = { model: { encoder: { hidden_size: size } } };
local learning_rate(value) = { trainer: { optimizer: { lr: value } } };
// Shows what the runs of `small`, which most often end with their epochs, would still gain.
local longer(epochs) = { longer: { trainer: { num_epochs: epochs } } };
{
  seeds: [1],
  configs: {
    ner: {
      config: paper.baseline('small', 'ner'),
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
      } + longer(180),
    },
    sst: {
      config: paper.baseline('small', 'sst'),
      variants: {
        small: {},
        fixed_vectors: glove({ trainable: false }),
        sentences: {
          dataset_reader: { use_subtrees: false },
          trainer: { num_epochs: 30 },
        },
        all_phrases: { dataset_reader: { min_phrase_length: 1 } },
        lower_rate: learning_rate(0.0004),
      } + longer(12),
    },
    snli: {
      config: paper.baseline('small', 'snli'),
      variants: {
        small: {},
        trained_vectors: glove({ trainable: true }),
        more_dropout: { model: { dropout: 0.35, output_feedforward: { dropout: 0.35 } } },
        paper_rate: learning_rate(0.0004),
      } + longer(45),
    },
    srl: {
      config: paper.baseline('small', 'srl'),
      variants: {
        small: {},
        two_layers: { model: { encoder: { num_layers: 2 } } },
        lower_rate: learning_rate(0.001),
        more_dropout: { model: { encoder: { recurrent_dropout_probability: 0.3 } } },
      },
    },
    squad: {
      config: paper.baseline('small', 'squad'),
      variants: {
        small: {},
        lower_rate: learning_rate(0.001),
        more_dropout: { model: { dropout: 0.3 } },
      } + longer(24),
    },
    coreference: {
      config: paper.baseline('small', 'coreference'),
      variants: {
        small: {},
        smaller_window: { model: { max_training_sentences: 20 } },
        less_dropout: { model: { lexical_dropout: 0.3 } },
        lower_rate: learning_rate(0.0005),
        fewer_spans: { model: { spans_per_word: 0.3 } },
        combined: { model: { lexical_dropout: 0.3, spans_per_word: 0.3 } },
      },
    },
  },
}
