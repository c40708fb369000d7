// The baseline with ELMo, concatenated to the word vectors, and again after the encoder, where each
// task has its own mix of the layers. All five mixes read one forward pass.
local places = ['feats', 'lemmas', 'tree', 'upos'];

(import 'baseline.jsonnet') {
  elmo:: { type: 'elmo_token_embedder', bilm: 'mini', dropout: 0.3 },
  model+: {
    embedder+: { token_embedders+: { elmo: $.elmo } },
    output_embedders: { [place]: $.elmo for place in places },
  },
}
