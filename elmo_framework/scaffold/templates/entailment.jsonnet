{% import '_data.jsonnet' as data with context %}
{% include '_head.jsonnet' %}
//
{{ data.targets('pairs of texts') }}
{
  dataset_reader: {{ reader }},
{{ data.held_out('pairs') }}
  model: {
    type: '{{ head }}',  // compares the words of both texts
{{ data.embedder() }}
    encoder: { type: 'lstm', hidden_size: {{ hidden_size }}, bidirectional: true },
    projection_feedforward: { num_layers: 1, hidden_dims: {{ hidden_size }}, activations: 'relu' },
    inference_encoder: { type: 'lstm', hidden_size: {{ hidden_size }}, bidirectional: true },
    output_feedforward: { num_layers: 1, hidden_dims: {{ hidden_size }}, activations: 'relu', dropout: 0.2 },
    dropout: 0.2,
  },
{{ data.trainer(metric) }}
}
