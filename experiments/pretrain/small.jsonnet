// Pretrain a biLM of the small size. Everything else is as in original.jsonnet.
local sizes = import '../lib/bilm_sizes.libsonnet';
(import 'original.jsonnet') + { model+: sizes.small }
