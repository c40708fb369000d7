// A French biLM: see de.jsonnet.
(import 'bilm.libsonnet') + { corpus:: 'data/corpus/fr' }
