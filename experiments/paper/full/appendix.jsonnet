(import '../appendix.jsonnet') + { size:: 'full' }
