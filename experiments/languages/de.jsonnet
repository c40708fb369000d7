// A German biLM. docs/your_language.md has all commands.
//
//   elmo train experiments/languages/de.jsonnet -s runs/languages/de
(import 'bilm.libsonnet') + { corpus:: 'data/corpus/de' }
