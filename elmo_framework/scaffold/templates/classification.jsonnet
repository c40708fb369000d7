{% import '_data.jsonnet' as data with context %}
{% include '_head.jsonnet' %}
//
// The data is {{ found.description }}: {{ survey.num_examples | count }} texts with one label each.
// Always answering {{ survey.majority[0] | jsonnet }} is right for {{ survey.majority[1] | percent }} of them.
{
  dataset_reader: {{ reader }},
{{ data.held_out('texts') }}
  model: {
    type: 'basic_classifier',
{{ data.embedder() }}
{% if is_small %}
    // With so few texts, the mean of the vectors is learned faster than an encoder. With more texts,
    // add: encoder: { type: 'lstm', hidden_size: 100, bidirectional: true }
    pooler: { type: 'bag_of_embeddings', averaged: true },
    dropout: 0.2,
{% else %}
    encoder: { type: 'lstm', hidden_size: {{ hidden_size }}, bidirectional: true },
    pooler: 'max',
    dropout: 0.5,
{% endif %}
  },
{{ data.trainer('+accuracy', lr=0.01 if is_small else 0.001) }}
}
