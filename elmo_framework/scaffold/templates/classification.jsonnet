{% import '_data.jsonnet' as data with context %}
{% include '_head.jsonnet' %}
//
{{ data.targets('texts') }}
{
  dataset_reader: {{ reader }},
{{ data.held_out('texts') }}
  model: {
    type: '{{ head }}',
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
{{ data.trainer(metric, lr=0.01 if is_small else 0.001) }}
}
