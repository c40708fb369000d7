// Written by `{{ command | replace('\n', '\n// ') }}`.
//
// This is jsonnet: JSON with comments. `elmo describe` lists what else can be set. Paths are
// relative to the folder in which you run `elmo`.
