// The tagger of experiments/ner with the layers of Flair's language models.
(import '../../experiments/ner/baseline.jsonnet') {
  plugins: ['plugins.legacy_encoders'],
  model+: {
    embedder+: {
      token_embedders+: { flair: { type: 'flair', folder: 'models/flair-news', dropout: 0.5 } },
    },
  },
}
