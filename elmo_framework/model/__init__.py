"""What every model is: `Model`, `Head`, and the `Task` that a model solves."""
