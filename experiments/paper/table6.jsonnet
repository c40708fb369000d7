// Table 6: a linear probe on each layer of a biLM, and on GloVe: parts of speech; and chunks and
// constituents, which the paper does not have.
//
//   elmo study experiments/paper/table6.jsonnet -s runs/table6 --final
//
// Another biLM: (import 'table6.jsonnet') { bilm:: 'original' }.
local table5 = import 'table5.jsonnet';
{
  local study = self,
  local layers = table5 { bilm:: study.bilm },
  bilm:: 'mini',
  configs: {
    pos: { config: import '../probes/pos.jsonnet' },
    chunks: { config: import '../probes/chunks.jsonnet' },
    constituents: { config: import '../probes/constituents.jsonnet' },
  },
  variants: {
    glove: layers.glove,
    layer0: layers.layer({ type: 'layer', index: 0 }),
    layer1: layers.layer({ type: 'layer', index: 1 }),
    layer2: layers.layer({ type: 'layer', index: 2 }),
  },
  seeds: [1],
  comparisons: [['layer1', 'layer0'], ['layer1', 'layer2'], ['layer1', 'glove']],
}
