// Table 5: word sense disambiguation by the nearest mean vector, for each layer of a biLM.
//
//   elmo study experiments/paper/table5.jsonnet -s runs/table5 --final
//
// SemCor gives the senses, semeval2007 is the development data, senseval2 the test data. Nothing is
// drawn at random, so there is one seed. Another biLM: (import 'table5.jsonnet') { bilm:: 'original' }.
local embedders(value) = { 'model.embedder.token_embedders': value };
{
  local study = self,
  bilm:: 'mini',
  layer(mix):: embedders({
    elmo: { type: 'elmo_token_embedder', bilm: study.bilm, mix: mix, dropout: 0.0 },
  }),
  glove:: embedders({
    tokens: {
      type: 'embedding',
      embedding_dim: 50,
      pretrained_file: 'data/glove/glove.6B.50d.top100k.txt',
      lowercase: true,
      trainable: false,
    },
  }),
  configs: {
    wsd: {
      config: import '../wsd/elmo.jsonnet',
      metric: '+f1-measure-overall',
      variants: {
        first_sense: study.glove { 'model.method': 'first' },
        most_frequent: study.glove { 'model.method': 'most_frequent' },
        glove: study.glove,
        layer0: study.layer({ type: 'layer', index: 0 }),
        layer1: study.layer({ type: 'layer', index: 1 }),
        layer2: study.layer({ type: 'layer', index: 2 }),
        average: study.layer('average'),
      },
    },
  },
  seeds: [1],
  comparisons: [['layer1', 'layer0'], ['layer2', 'layer0'], ['layer2', 'first_sense']],
}
