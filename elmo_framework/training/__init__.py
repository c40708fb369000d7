"""The one trainer, and what it takes: optimizers, schedules, checkpoints, callbacks."""
