"""ELMo for programs: the classes and functions that people know, without a config."""
