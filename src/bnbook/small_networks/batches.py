"""Mini-batches of a stack of members: each its own order, equal seeds the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bnbook.data import Dataset, normalise
from bnbook.errors import BnbookError
from bnbook.small_networks.arm import PhaseArm


class MemberBatches:
    """Mini-batches of each member's own order, a fresh permutation an epoch; equal seeds see equal
    batches."""

    def __init__(self, seeds: Sequence[int], arm: PhaseArm, dataset: Dataset, dtype: torch.dtype) -> None:
        self.size, self.dataset, self.dtype = arm.batch_size, dataset, dtype
        self.count = arm.examples or len(dataset.train_labels)
        if max(self.size, self.count) > len(dataset.train_labels):
            raise BnbookError(
                f"batch size {self.size} and {self.count} examples do not fit the "
                f"{len(dataset.train_labels)} training "
                "images; expected fewer"
            )
        self.names = sorted(set(seeds))
        self.place = torch.tensor([self.names.index(seed) for seed in seeds])
        self.generators = {seed: torch.Generator().manual_seed(1_000_003 + seed) for seed in self.names}
        self.kept = (
            {  # which examples a member trains on: its own choice, by its seed
                seed: torch.randperm(
                    len(dataset.train_labels), generator=torch.Generator().manual_seed(seed)
                )[: self.count]
                for seed in self.names
            }
            if arm.examples
            else {}
        )
        self._begin_epoch()

    def __next__(self) -> tuple[Tensor, Tensor]:
        """Images (S, B, C, H, W) and labels (S, B)."""
        if self.at + self.size > self.count:
            self._begin_epoch()
        chosen = self.orders[:, self.at : self.at + self.size][self.place]
        self.at += self.size
        images = normalise(self.dataset.train_images[chosen.flatten()], self.dataset).to(self.dtype)
        return images.view(*chosen.shape, *images.shape[1:]), self.dataset.train_labels[chosen]

    def state(self) -> dict[str, Any]:
        """As `bnbook.data.batches.Batches` has it, for every seed."""
        return {"generators": self.epoch, "at": self.at}

    def load_state(self, state: dict[str, Any]) -> None:
        for seed, generator in self.generators.items():
            generator.set_state(state["generators"][seed])
        self._begin_epoch()
        self.at = state["at"]

    def _begin_epoch(self) -> None:
        self.epoch = {seed: generator.get_state() for seed, generator in self.generators.items()}
        orders = [torch.randperm(self.count, generator=self.generators[seed]) for seed in self.names]
        if self.kept:
            orders = [self.kept[seed][order] for seed, order in zip(self.names, orders)]
        self.orders, self.at = torch.stack(orders).to(self.dataset.device), 0
