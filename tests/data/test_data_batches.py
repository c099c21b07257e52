"""Normalising, batches, crops and flips against slow twins."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tiny_data
import torch

from bnbook.data import Batches, DataIdentity, Dataset, batches, fixed_sample, normalise
from bnbook.errors import BnbookError


def make(count: int = 23, shape: tuple[int, int, int] = (3, 6, 7)) -> Dataset:
    arrays = tiny_data.make_arrays(shape, seed=5, train=count, test=10)
    identity = DataIdentity("tiny", count, 10, shape, "0" * 64, False)
    mean, std = torch.tensor([0.1, 0.5, 0.7])[: shape[0]], torch.tensor([0.2, 0.3, 0.25])[: shape[0]]
    return Dataset(*map(torch.from_numpy, arrays), identity, mean, std, tiny_data.CLASSES)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_normalised_pixels_and_fixed_samples():
    dataset = make()
    mean, std = (np.array(each).reshape(3, 1, 1) for each in ([0.1, 0.5, 0.7], [0.2, 0.3, 0.25]))
    found = normalise(dataset.train_images, dataset)
    assert found.dtype == torch.float32 and dataset.train_images.dtype == torch.uint8  # untouched
    expected = (dataset.train_images.double().numpy() / 255 - mean) / std
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)
    for split, count in (("test", 4), ("train", 23)):
        images, labels = fixed_sample(dataset, count, split)
        assert torch.equal(images, getattr(dataset, f"{split}_images")[:count])
        assert torch.equal(labels, getattr(dataset, f"{split}_labels")[:count])


def slow_crop_and_flip(inputs: np.ndarray, corners: np.ndarray, flips: np.ndarray) -> np.ndarray:
    """One example, one pixel at a time."""
    count, channels, height, width = inputs.shape
    outputs = np.zeros_like(inputs)
    for b, c, row, column in itertools.product(range(count), range(channels), range(height), range(width)):
        from_row = row + corners[b, 0] - 4
        from_column = (width - 1 - column if flips[b] else column) + corners[b, 1] - 4
        if 0 <= from_row < height and 0 <= from_column < width:
            outputs[b, c, row, column] = inputs[b, c, from_row, from_column]
    return outputs


def test_crop_and_flip_agree_with_the_slow_twin():
    inputs = torch.randn(81, 2, 6, 7, generator=generator())
    corners = torch.cartesian_prod(torch.arange(9), torch.arange(9))  # every place a crop can have
    flips = torch.arange(81) % 2 == 0
    found = batches.crop_and_flip(inputs, corners, flips)
    np.testing.assert_array_equal(
        found.numpy(), slow_crop_and_flip(inputs.numpy(), corners.numpy(), flips.numpy())
    )
    assert torch.equal(batches.crop_and_flip(inputs[:1], torch.tensor([[4, 4]]), flips[1:2]), inputs[:1])


def test_augmentation_draws_every_crop_evenly():
    corners, flips = batches.draw_augmentation(81_000, generator())
    counts = torch.bincount(corners[:, 0] * 9 + corners[:, 1], minlength=81)
    assert len(counts) == 81 and (counts - 1000).abs().max() < 5 * 1000**0.5
    assert abs(flips.float().mean().item() - 0.5) < 5 * 0.5 / 81_000**0.5


@pytest.mark.parametrize("augment", [False, True])
def test_epochs_are_fresh_permutations_cropped_without_what_fills_no_batch(augment):
    dataset, source = make(), generator(3)
    stream = Batches(dataset, 5, generator(3), augment=augment)
    for _ in range(3):
        order = torch.randperm(23, generator=source)
        expected = normalise(dataset.train_images[order], dataset).numpy()
        if augment:
            corners, flips = batches.draw_augmentation(23, source)
            expected = slow_crop_and_flip(expected, corners.numpy(), flips.numpy())
        found = list(itertools.islice(stream, 4))
        assert all(inputs.shape == (5, 3, 6, 7) for inputs, _ in found)
        np.testing.assert_array_equal(torch.cat([inputs for inputs, _ in found]).numpy(), expected[:20])
        assert torch.equal(torch.cat([targets for _, targets in found]), dataset.train_labels[order[:20]])


def test_bad_arguments():
    dataset = make()
    for size in (0, 24):
        with pytest.raises(BnbookError, match=f"batch size {size} .* expected 1 to 23"):
            Batches(dataset, size, generator())
    with pytest.raises(BnbookError, match="expected 1 to 10"):
        fixed_sample(dataset, 11)
    with pytest.raises(BnbookError, match="unknown split 'valid'"):
        fixed_sample(dataset, 1, "valid")
