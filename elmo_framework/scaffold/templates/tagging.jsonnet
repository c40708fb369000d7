{% import '_data.jsonnet' as data with context %}
{% include '_head.jsonnet' %}
//
// The data is {{ recognized.description }}: {{ statistics.num_examples | count }} sentences.
{% if statistics.has_spans %}
// The tags mark spans; BIOUL also marks where they end.
{% endif %}
{
  dataset_reader: {{ reader }},
{{ data.held_out('sentences') }}
{% if not is_english %}
  tokenizer: {{ tokenizer | jsonnet }},  // splits raw text for `elmo predict`
{% endif %}
  model: {
    type: 'crf_tagger',
{{ data.embedder() }}
    encoder: { type: 'lstm', hidden_size: {{ hidden_size }}, bidirectional: true },
    dropout: 0.3,
  },
{{ data.trainer('+f1-measure-overall' if statistics.has_spans else '+accuracy') }}
}
