(import '../table3.jsonnet') + { size:: 'full' }
