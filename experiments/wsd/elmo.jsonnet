// Word senses by the nearest mean vector of one layer of a biLM (section 5.3 of the paper, Table 5).
//
// SemCor gives the vectors of senses. Words that it does not have get WordNet's first sense.
local reader = { sense_index: 'data/wordnet30/index.sense' };
{
  dataset_reader: reader { type: 'semcor' },
  validation_dataset_reader: reader { type: 'wsd' },
  train_data_path: 'data/semcor/semcor30.jsonl',
  validation_data_path: 'data/wsd_eval/semeval2007/semeval2007.data.xml',
  test_data_path: 'data/wsd_eval/senseval2/senseval2.data.xml',
  evaluate_on_test: true,
  model: {
    type: 'nearest_sense',
    embedder: {
      token_embedders: {
        elmo: {
          type: 'elmo_token_embedder',
          bilm: 'runs/bilm',
          mix: { type: 'layer', index: 2 },  // the paper's best
        },
      },
    },
  },
  data_loader: { batch_size: 64 },
  trainer: {
    num_epochs: 1,  // the vectors are means: more epochs would count the same again
    validation_metric: '+f1-measure-overall',
    callbacks: [],
  },
}
