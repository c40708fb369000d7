"""One folder per task: its examples, readers, batches, heads and task. No task knows another."""
