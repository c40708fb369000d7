// The tagger of experiments/ner with a biLM that was converted from ELMoForManyLangs.
(import '../../experiments/ner/elmo.jsonnet') {
  plugins: ['plugins.legacy_encoders'],
  model+: { embedder+: { token_embedders+: { elmo+: { bilm: 'models/many-langs-en' } } } },
}
