"""Weight decay in front of batch norm: trainings, the angle of a step, and recipes that are one training."""
