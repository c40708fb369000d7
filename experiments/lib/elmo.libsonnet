// Adds ELMo to a configuration, and nothing else:
//
//   (import 'baseline.jsonnet') + elmo.at('input', { bilm: 'runs/bilm' })
//
// At the input its vectors stand beside those of the other embedders, before the task's encoder;
// at the output beside what that encoder gives (section 3.3 of the paper). At both places each
// has a mix of its own.
{
  // place: 'input', 'output' or 'both'; options: the keys of elmo_token_embedder.
  at(place, options)::
    assert std.member(['input', 'output', 'both'], place) :
           "elmo.at: the place is '%s'; allowed: 'input', 'output', 'both'" % place;
    local elmo = { type: 'elmo_token_embedder' } + options;
    {
      model+:
        (if place == 'output' then {} else { embedder+: { token_embedders+: { elmo: elmo } } })
        + (if place == 'input' then {} else { output_embedder: elmo }),
    },
}
