// The parser with ELMo, concatenated to the word vectors.
(import 'parser_baseline.jsonnet') {
  elmo:: { type: 'elmo_token_embedder', bilm: 'mini', dropout: 0.2 },
  model+: { embedder+: { token_embedders+: { elmo: $.elmo } } },
}
