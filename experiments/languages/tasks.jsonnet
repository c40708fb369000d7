// Named entities and parts of speech in six languages: without a biLM, with a control (random weights)
// and with a biLM of one's own. docs/your_language.md has all commands.
//
//   elmo study experiments/languages/tasks.jsonnet -s runs/languages/tasks --jobs 2 --final
local elmo = import '../lib/elmo.libsonnet';

// The tagger of CoNLL-2003, small and without word vectors from a file: words that occur once train
// the vector of unknown words.
local tagger = (import '../ner/baseline.jsonnet') + (import '../ner/small.libsonnet') + {
  model+: { embedder+: { token_embedders+: { tokens+: { pretrained_file: null, min_count: 2 } } } },
};

local with_bilm(bilm) = elmo.at('input', {
  bilm: bilm,
  mix: { type: 'scalar_mix', l2: 0.1 },
  dropout: 0.0,  // the dropout of the tagger follows
});

local task(language, config) = {
  config: config,
  variants: {
    none: {},
    control: with_bilm('runs/languages/%s-control' % language),
    own: with_bilm('runs/languages/' + language),
  },
};

// A tenth of the labels: with all of them, the gain of any biLM is small.
local entities(language, train, dev) = task(language, tagger + {
  train_data_path: 'data/languages/%s/ner/%s' % [language, train],
  validation_data_path: 'data/languages/%s/ner/%s' % [language, dev],
  // The development data of WikiANN have 9,000 sentences.
  validation_dataset_reader: self.dataset_reader + { max_instances: 3000 },
  train_fraction: 0.1,
  trainer+: { num_epochs: 60, evaluate_every: { epochs: 2 }, patience: 8 },
});

local parts_of_speech(language, treebank) = task(language, tagger + {
  dataset_reader: { type: 'universal_dependencies_pos' },
  train_data_path: 'data/languages/%s/ud/%s-ud-train.conllu' % [language, treebank],
  validation_data_path: 'data/languages/%s/ud/%s-ud-dev.conllu' % [language, treebank],
  trainer+: { num_epochs: 40, patience: 5, validation_metric: '+accuracy' },
});

{
  configs: {
    ner_de: entities('de', 'train.txt', 'dev.txt'),
    ner_fr: entities('fr', 'train.txt', 'dev.txt'),
    pos_fr: parts_of_speech('fr', 'fr_sequoia'),
    pos_la: parts_of_speech('la', 'la_perseus'),
    // The biLM has read the sentences of the training data and no other text.
    ner_es: entities('es', 'esp.train', 'esp.testa'),
    ner_nl: entities('nl', 'ned.train', 'ned.testa'),
    ner_hau: entities('hau', 'train.txt', 'dev.txt'),
  },
  seeds: [1, 2, 3, 4, 5],
  comparisons: [['own', 'none'], ['own', 'control']],
}
