(import '../figure2.jsonnet') + { size:: 'full' }
