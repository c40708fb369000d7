// Common parts of the studies of the paper's tables and figures.
//
// A study has two sizes. `small` is for two cores and for the data of experiments/README.md; `full`
// has the settings and the data of the paper. Each study has the hidden field `size`; the files in
// full/ change it:
//
//   (import '../table1.jsonnet') + { size:: 'full' }
local lib = import '../lib/elmo.libsonnet';

local tasks = {
  ner: {
    baseline: import '../ner/baseline.jsonnet',
    elmo: import '../ner/elmo.jsonnet',
    small: (import '../ner/small.libsonnet') + {
      train_fraction: 0.1,
      trainer+: { num_epochs: 60, evaluate_every: { epochs: 2 }, patience: 8 },
    },
    full: { test_data_path: 'data/conll2003/test.txt' },
  },
  sst: {
    baseline: import '../sst/baseline.jsonnet',
    elmo: import '../sst/elmo.jsonnet',
    small: import '../sst/small.libsonnet',
    full: { test_data_path: 'data/sst/test.txt' },
  },
  snli: {
    baseline: import '../snli/baseline.jsonnet',
    elmo: import '../snli/elmo.jsonnet',
    small: import '../snli/small.libsonnet',
    full: { test_data_path: 'data/snli/snli_1.0_test.jsonl' },
  },
  srl: {
    baseline: import '../srl/baseline.jsonnet',
    elmo: import '../srl/elmo.jsonnet',
    small: (import '../srl/small.libsonnet') + {
      train_fraction: 0.02,
      trainer+: { num_epochs: 120, evaluate_every: { epochs: 8 }, patience: 4 },
    },
    full: {
      local ontonotes(part) = 'data/conll2012/%s/**/*gold_conll' % part,
      train_data_path: ontonotes('train'),
      validation_data_path: ontonotes('development'),
      test_data_path: ontonotes('test'),
    },
  },
  squad: {
    baseline: import '../squad/baseline.jsonnet',
    elmo: import '../squad/elmo.jsonnet',
    small: import '../squad/small.libsonnet',
    // The official test data is not public: a tenth of the training data replaces it.
    full: { test_fraction: 0.1 },
  },
  coreference: {
    baseline: import '../coreference/baseline.jsonnet',
    elmo: import '../coreference/elmo.jsonnet',
    small: import '../coreference/small.libsonnet',
    full: { test_data_path: 'data/conll2012/test.english.v4_gold_conll' },
  },
};

local is_elmo(value) =
  std.isObject(value) && std.get(value, 'type') == 'elmo_token_embedder';

// A config with each block of ELMo changed by a function.
local map_elmo(change, value) =
  if is_elmo(value) then change(value)
  else if std.isObject(value) then std.mapWithKey(function(_, inner) map_elmo(change, inner), value)
  else value;

// A config without ELMo, but with all else that an `elmo.jsonnet` changes.
local without_elmo(value) =
  if !std.isObject(value) then value
  else { [key]: without_elmo(value[key]) for key in std.objectFields(value) if !is_elmo(value[key]) };

// What `to` has and `from` has not: merged into `from`, it makes `to`.
local difference(from, to) = {
  [key]:
    if std.isObject(to[key]) && std.isObject(std.get(from, key))
    then difference(from[key], to[key])
    else to[key]
  for key in std.objectFields(to)
  if !std.objectHas(from, key) || from[key] != to[key]
};

{
  tasks: std.objectFields(tasks),

  // The pretrained biLM of a size, and the control: random weights with its scale.
  //   make random-bilm BILM=mini OUT=runs/mini-control TEXT=experiments/demo/lm_train.txt
  bilm: { small: 'mini', full: 'original' },
  control: { small: 'runs/mini-control', full: 'runs/original-control' },

  // The config of a task without ELMo.
  baseline(size, task):: tasks[task].baseline + tasks[task][size],

  // The overrides that add ELMo where the paper has it for this task. `change` is a function of
  // the block of ELMo in the config.
  elmo(size, task, change)::
    local config = tasks[task].elmo + tasks[task][size];
    difference($.baseline(size, task), map_elmo(change, config)),

  // The overrides that add ELMo at the place 'input', 'output' or 'both'.
  elmo_at(size, task, place, change)::
    local config = tasks[task].elmo + tasks[task][size];
    local block = config.model.embedder.token_embedders.elmo;
    difference($.baseline(size, task), without_elmo(config) + lib.at(place, change(block))),

  // A change of the block of ELMo: other values of some keys.
  with(changes):: function(elmo) elmo + changes,
}
