"""What a training costs, in floating-point operations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from bnbook.data import Dataset
from bnbook.training.arm import Arm, build_model


def estimate_operations(arm: Arm, dataset: Dataset) -> float:
    """Operations of the arm's steps, a multiply-add counted as two: steps × batch size × (forward and
    backward).

    Counted by torch on one step with a batch of two; convolutions and matrix products only, evaluation left
    out (normalization and nonlinearities cost time but few operations).
    """
    with torch.random.fork_rng(devices=[]):
        model = build_model(arm, dataset)
    inputs, targets = torch.zeros(2, *dataset.train_images.shape[1:]), torch.zeros(2, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(model(inputs), targets).backward()
    return counter.get_total_flops() / 2 * arm.batch_size * arm.steps
