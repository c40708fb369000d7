"""The bidirectional language model that embedders read: token encoder, context layers, mix."""
