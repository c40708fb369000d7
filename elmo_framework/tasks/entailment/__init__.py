"""Whether one sentence follows from another, contradicts it, or neither."""
