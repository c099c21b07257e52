"""What the chapters on the VGG network share: the ladder's trainings at one width, and numbers out of them.

arms: the trainings · looks: what the probes saw, summed up over windows of the training · accuracy, moments.
"""
