// The tagger of the demo, with ELMo.
(import '../ner/elmo.jsonnet') + (import 'settings.libsonnet')
