(import '../table1.jsonnet') + { size:: 'full' }
