{% import '_data.jsonnet' as data with context %}
{% include '_head.jsonnet' %}
//
// The data is {{ found.description }}: {{ survey.num_examples | count }} pairs of texts with one label each.
// Always answering {{ survey.majority[0] | jsonnet }} is right for {{ survey.majority[1] | percent }} of them.
{
  dataset_reader: {{ reader }},
{{ data.held_out('pairs') }}
  model: {
    type: 'esim',  // compares the words of both texts
{{ data.embedder() }}
    encoder: { type: 'lstm', hidden_size: {{ hidden_size }}, bidirectional: true },
    projection_feedforward: { num_layers: 1, hidden_dims: {{ hidden_size }}, activations: 'relu' },
    inference_encoder: { type: 'lstm', hidden_size: {{ hidden_size }}, bidirectional: true },
    output_feedforward: { num_layers: 1, hidden_dims: {{ hidden_size }}, activations: 'relu', dropout: 0.2 },
    dropout: 0.2,
  },
{{ data.trainer('+accuracy') }}
}
