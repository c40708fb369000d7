"""One folder a task: example, reader, batch, head and task. Tasks do not know each other."""
