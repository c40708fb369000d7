// The tagger of the demo, without ELMo.
(import '../ner/baseline.jsonnet') + (import 'settings.libsonnet')
