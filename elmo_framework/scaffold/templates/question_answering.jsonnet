{% import '_data.jsonnet' as data with context %}
{% include '_head.jsonnet' %}
//
// The data is {{ recognized.description }}: {{ statistics.num_examples | count }} questions.
{
  dataset_reader: {{ reader }},
{{ data.held_out('questions') }}
  model: {
    type: 'bidaf_self_attention',
{{ data.embedder() }}
    // Small, for a CPU; the paper's model has twice the size.
    encoder: { type: 'gru', hidden_size: 48, bidirectional: true },
    residual_encoder: { type: 'gru', hidden_size: 48, bidirectional: true },
    span_start_encoder: { type: 'gru', hidden_size: 48, bidirectional: true },
    span_end_encoder: { type: 'gru', hidden_size: 48, bidirectional: true },
    projection_dim: 96,
    dropout: 0.2,
    max_span_length: 17,
{% if statistics.num_without_answer %}
    no_answer: true,  // {{ statistics.num_without_answer | count }} of the questions have no answer
{% endif %}
  },
{{ data.trainer('+f1') }}
}
