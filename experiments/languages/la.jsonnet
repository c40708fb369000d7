// A Latin biLM: see de.jsonnet.
(import 'bilm.libsonnet') + { corpus:: 'data/corpus/la' }
