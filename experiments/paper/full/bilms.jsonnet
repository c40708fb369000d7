(import '../bilms.jsonnet') + { size:: 'full' }
