// Convert training options of bilm-tf to a model, a data loader and a trainer:
//
//   local bilm_tf = import '../lib/bilm_tf.libsonnet';
//   bilm_tf.pretraining(import '/path/to/options.json') + {
//     dataset_reader: { type: 'language_modeling' },
//     train_data_path: 'data/lm/train',
//     validation_data_path: 'data/lm/valid.txt',
//   }
//
// Or convert only the model: { ..., model: bilm_tf.model(import '/path/to/options.json') }.
// The words of the text are counted; their number is the length of an epoch, and is compared with
// n_train_tokens. n_characters and n_gpus are not used: characters are the bytes of UTF-8, and
// torchrun sets the number of processes.
local get(options, key, default) = if std.objectHas(options, key) then options[key] else default;
{
  model(options)::
    local dropout = get(options, 'dropout', 0.0);
    local lstm = options.lstm;
    local num_filters = std.foldl(function(sum, filter) sum + filter[1], options.char_cnn.filters, 0);
    assert std.objectHas(options, 'char_cnn') :
           "bilm_tf: the options have no 'char_cnn': a biLM here reads characters, not whole words";
    assert get(options, 'bidirectional', true) :
           "bilm_tf: 'bidirectional' is false; a biLM reads both ways";
    assert !get(options, 'share_embedding_softmax', false) :
           "bilm_tf: 'share_embedding_softmax' is true; characters cannot share the softmax's rows";
    {
      type: 'bilm',
      token_encoder: {
        type: 'char_cnn',
        embedding_dim: options.char_cnn.embedding.dim,
        filters: options.char_cnn.filters,
        num_highway: get(options.char_cnn, 'n_highway', 0),
        // bilm-tf has no projection if the number of filters equals the input size of the LSTM.
        projection_dim: if num_filters == lstm.projection_dim then null else lstm.projection_dim,
        activation: get(options.char_cnn, 'activation', 'relu'),
        max_characters_per_token: options.char_cnn.max_characters_per_token,
      },
      context_layers: {
        type: 'elmo_lstm',
        cell_size: lstm.dim,
        projection_dim: lstm.projection_dim,
        num_layers: get(lstm, 'n_layers', 1),
        cell_clip: get(lstm, 'cell_clip', null),
        projection_clip: get(lstm, 'proj_clip', null),
        use_skip_connections: get(lstm, 'use_skip_connections', false),
        dropout: dropout,
      },
      dropout: dropout,
      num_samples:
        if get(options, 'sample_softmax', true)
        then options.n_negative_samples_batch
        else null,
      // The vocabulary file of bilm-tf has <S>, </S> and <UNK> before the words.
      [if std.objectHas(options, 'n_tokens_vocab') then 'max_vocabulary_size']:
        options.n_tokens_vocab - 3,
    },

  pretraining(options):: {
    model: $.model(options),
    data_loader: {
      type: 'windows',
      batch_size: options.batch_size,
      unroll_steps: options.unroll_steps,
      [if std.objectHas(options, 'n_train_tokens') then 'num_train_tokens']:
        options.n_train_tokens,
    },
    trainer: {
      // Constants of bilm-tf, except for the precision, the checkpoints, and the learning rate,
      // which is an option.
      precision: 'auto',  // bfloat16 on a GPU that has it
      optimizer: {
        type: 'adagrad',
        lr: get(options, 'learning_rate', 0.2),
        initial_accumulator_value: 1.0,
        eps: 0.0,
      },
      grad_norm: get(options, 'all_clip_norm_val', null),
      num_epochs: options.n_epochs,
      validation_metric: '-perplexity',
      // bilm-tf: every 1,250 updates, which are seconds on one GPU of today.
      checkpointer: { save_every: { minutes: 15 }, keep_most_recent_by_count: 2 },
    },
  },
}
