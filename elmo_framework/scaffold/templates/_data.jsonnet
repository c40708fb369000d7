{% macro targets(noun) %}
{% if recognized.task == 'regression' %}
// The data is {{ recognized.description }}: {{ statistics.num_examples | count }} {{ noun }} with a number each.
{% elif recognized.task == 'multi_label' %}
// The data is {{ recognized.description }}: {{ statistics.num_examples | count }} {{ noun }} with any number of labels each.
// {{ statistics.majority[1] | percent }} of them have the most frequent label, {{ statistics.majority[0] | jsonnet }}.
{% else %}
// The data is {{ recognized.description }}: {{ statistics.num_examples | count }} {{ noun }} with one label each.
// Always answering {{ statistics.majority[0] | jsonnet }} is right for {{ statistics.majority[1] | percent }} of them.
{% endif %}
{%- endmacro %}
{% macro held_out(noun) %}
  train_data_path: {{ paths.training | string | jsonnet }},
{% if paths.validation %}
  validation_data_path: {{ paths.validation | string | jsonnet }},  // selects the best epoch
{% else %}
  validation_fraction: {{ fraction }},  // of the {{ noun }}: held out to select the best epoch
{% endif %}
{% if paths.test %}
  test_data_path: {{ paths.test | string | jsonnet }},  // for `elmo evaluate RUN --test`
{% else %}
  test_fraction: {{ fraction }},  // held out as well, for `elmo evaluate RUN --test`
{% endif %}
{% if counts_labels %}
  // The rarest label has {{ statistics.rarest }} of the examples. So the labels of held-out data are counted too.
  datasets_for_vocab_creation: ['train', 'validation', 'test'],
{% endif %}
{%- endmacro %}
{% macro embedder() %}
    embedder: {
      token_embedders: {
{% if bilm == 'mini' %}
        // The biLM of the package, which has read English. Its layers are computed once.
{% else %}
        // Frozen: its layers are computed once.
{% endif %}
{% if cache[0] == 'none' %}
        // To cache them (about {{ (cache[1] / 1e9) | round(1) }} GB) there is not enough space on the disk.
        elmo: { type: 'elmo_token_embedder', bilm: {{ bilm | jsonnet }}, dropout: 0.3, cache: 'none' },
{% else %}
        elmo: { type: 'elmo_token_embedder', bilm: {{ bilm | jsonnet }}, dropout: 0.3 },
{% endif %}
{% if not is_english and bilm == 'mini' %}
        // The text does not look English, so words of the data have vectors too. A biLM of your
        // language is better: see docs/pretraining.md.
        tokens: { type: 'embedding', embedding_dim: 100, min_count: 2 },
{% endif %}
      },
    },
{%- endmacro %}
{% macro trainer(metric, lr=0.001) %}
  data_loader: { batch_size: {{ batch_size }}, bucketing: true },
  trainer: {
    optimizer: { type: 'adam', lr: {{ lr }} },
    grad_norm: 5.0,
    num_epochs: {{ num_epochs }},
{% if evaluate_every %}
    evaluate_every: { steps: {{ evaluate_every }} },  // a quarter of the data
{% endif %}
    patience: {{ patience }},  // stop after so many evaluations without a better score
{% if metric in ['+accuracy', '+f1-measure-micro', '+pearson'] and is_tiny %}
    validation_metric: '-loss',  // {{ 'the accuracy' if metric == '+accuracy' else 'another score' }} of so few held-out examples is coarse
{% else %}
    validation_metric: '{{ metric }}',
{% endif %}
  },
{%- endmacro %}
