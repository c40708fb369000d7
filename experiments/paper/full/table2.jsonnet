(import '../table2.jsonnet') + { size:: 'full' }
