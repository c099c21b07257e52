"""Running trainings: the store of finished ones, the runner, progress."""
