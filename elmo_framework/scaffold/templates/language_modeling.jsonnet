{% include '_head.jsonnet' %}
//
// Pretrains a biLM on {{ recognized.description }}. First tokenize it, which holds out a part:
//
//   {{ prepare }}
{
  dataset_reader: { type: 'prepared_corpus' },
  train_data_path: {{ (corpus ~ '/training') | jsonnet }},
  validation_data_path: {{ (corpus ~ '/held_out') | jsonnet }},
{% if is_english %}
  // Continue the training of the biLM of the package, whose vocabulary stays as it is. Without this
  // key, training starts from random weights.
  init_from: { path: 'mini', reset_optimizer: true },
{% endif %}
  model: {
    type: 'bilm',
    // The sizes of `mini`: small enough for a CPU.
    token_encoder: {
      type: 'char_cnn',
      embedding_dim: 16,
      filters: [[1, 8], [2, 8], [3, 16], [4, 32], [5, 64], [6, 128], [7, 256]],
      num_highway: 1,
      projection_dim: 128,
      activation: 'relu',
      max_characters_per_token: 50,
    },
    context_layers: {
      type: 'elmo_lstm',
      cell_size: 1024,
      projection_dim: 128,
      num_layers: 2,
      cell_clip: 3.0,
      projection_clip: 3.0,
      use_skip_connections: true,
    },
    max_vocabulary_size: 20000,
    num_samples: {{ 4096 if num_words > 1e6 else 1024 }},
    state_reset_rate: 0.05,
  },
  data_loader: { type: 'windows', batch_size: {{ 64 if num_words > 5e6 else 16 }}, unroll_steps: 20 },
  trainer: {
    optimizer: { type: 'adam', lr: {{ 0.001 if is_english else 0.002 }} },
    learning_rate_scheduler: { type: 'slanted_triangular' },
    grad_norm: 10.0,
    num_epochs: {{ num_epochs }},  // about {{ (num_words / 1e6) | round(1) }} million words{{ '' if num_epochs == 1 else ', so the text is read more than once' }}
    evaluate_at_start: {{ 'true' if is_english else 'false' }},
    validation_metric: '-perplexity',
  },
}
