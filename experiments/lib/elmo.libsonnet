// Add ELMo to a config, and nothing else:
//
//   (import 'baseline.jsonnet') + elmo.at('input', { bilm: 'runs/bilm' })
//
// At the input, its vectors are concatenated to those of the other embedders, before the encoder of
// the task. At the output, they are concatenated to the output of that encoder (section 3.3 of the
// paper). With both, each place has a separate mix.
{
  // place: 'input', 'output' or 'both'; options: the keys of elmo_token_embedder.
  at(place, options)::
    assert std.member(['input', 'output', 'both'], place) :
           "elmo.at: the place is '%s'; choose from 'input', 'output', 'both'" % place;
    local elmo = { type: 'elmo_token_embedder' } + options;
    {
      model+:
        (if place == 'output' then {} else { embedder+: { token_embedders+: { elmo: elmo } } })
        + (if place == 'input' then {} else { output_embedder: elmo }),
    },
}
