"""One small network in every library, trained in one and carried to another: convolution, batch norm, rectifier, flattened,
dense, batch norm, rectifier, dense; arrays travel in one order, that of (B, C, H, W), kernels (out, in, ...).

`train` trains the library's network and leaves it in a folder; `carry` takes over each that lies there and says how far it then
answers from its source. Needs NumPy only, from Python 3.8 on.
"""

import json
import pathlib
import platform

import numpy as np
from questions import versions

STEPS, RATE, BATCH = 300, 0.1, 32
SIZES = {1: BATCH * 36, 2: BATCH}  # values a channel, of the two batch norms


def images(count, seed):
    """Gratings (B, 1, 8, 8) of four directions with random phase and noise, and their direction; from a seed."""
    draw = np.random.RandomState(seed)
    kind, phase = draw.randint(4, size=count), draw.uniform(0, 2 * np.pi, size=(count, 1, 1))
    row, column = np.mgrid[:8, :8]
    angle = (kind * np.pi / 4)[:, None, None]
    wave = np.sin(1.6 * (np.cos(angle) * row + np.sin(angle) * column) + phase)
    return (wave + 0.7 * draw.standard_normal((count, 8, 8)))[:, None].astype(np.float32), kind


def first(seed):
    """Weights to begin with, of each library alike; statistics and scales as its own layer has them."""
    draw = np.random.RandomState(seed)
    shapes = {"conv": (4, 1, 3, 3), "dense1": (16, 144), "dense2": (4, 16), "bias2": (4,)}
    return {
        key: (draw.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
        * (key != "bias2")
        for key, shape in shapes.items()
    }


class Carried:
    """Base of a library's network: turns arrays between the common order and the library's own.

    last: channels stand last; kernel: order of the library's kernels; dense: "oi" or "io"; turned: its momentum is the
    weight of the old; unbiased: its running variance is that with 1/(m - 1).
    """

    def to_own(self, key, a):
        if key == "conv":
            return a.transpose(["OIHW".index(each) for each in self.kernel])
        if key == "dense1" and self.last:
            a = a.reshape(16, 4, 6, 6).transpose(0, 2, 3, 1).reshape(16, 144)
        return a.T if key.startswith("dense") and self.dense == "io" else a

    def from_own(self, key, a):
        a = np.asarray(a, np.float32)
        if key == "conv":
            return a.transpose([self.kernel.index(each) for each in "OIHW"])
        if not key.startswith("dense"):
            return a.ravel()
        a = a.T if self.dense == "io" else a
        turned = key == "dense1" and self.last
        return a.reshape(16, 6, 6, 4).transpose(0, 3, 1, 2).reshape(16, 144) if turned else a

    def put(self, given):
        own = {key: self.to_own(key, np.asarray(a, np.float32)) for key, a in given.items()}
        self.write({key: np.ascontiguousarray(a) for key, a in own.items()})

    def get(self):
        return {key: self.from_own(key, a) for key, a in self.read().items()}

    def hand(self, x):
        return np.ascontiguousarray(np.moveaxis(x, 1, -1) if self.last else x)

    def answers(self, x):
        return np.asarray(self.evaluate(self.hand(x)), np.float64)

    def train(self, x, kind, rate):
        """One step of gradient descent on the cross-entropy in training mode; rate 0 moves the running statistics alone."""
        self.step(self.hand(x), np.eye(4, dtype=np.float32)[kind], rate)

    def of_norms(self, first, second):
        """Key of each array of the two batch norms -> the layer, as given, and the array's name there."""
        keys = ("scale", "shift", "mean", "variance")
        layers = (("1", first), ("2", second))
        return {key + n: (layer, name) for n, layer in layers for key, name in zip(keys, self.names)}

    def next_weight(self, weight):
        """What the newest batch counts for at the next step; where a library corrects its start, that changes."""
        return weight


class Stacked(Carried):
    """Base of those whose eight layers stand in one sequence, and whose arrays are named by place and own name."""

    @property
    def keys(self):
        norms = {key: f"{place}.{name}" for key, (place, name) in self.of_norms("1", "5").items()}
        return {"conv": "0.weight", "dense1": "4.weight", "dense2": "7.weight", "bias2": "7.bias", **norms}


def made(Net, eps=None, weight=None):
    own = {} if eps is None else {Net.epsilon: float(eps)}
    if weight is not None:
        own[Net.momentum] = float(1 - weight if Net.turned else weight)
    return Net(**own)


def train(Net, name, folder):
    """Train, and leave behind the arrays, the answers, and the statistics one batch later."""
    eps, momentum = Net.defaults
    net = made(Net)
    net.put(first(1))
    for step in range(STEPS):
        net.train(*images(BATCH, 100 + step), RATE)
    x, kind = images(256, 2)
    left, y = net.get(), net.answers(x)
    weight = net.next_weight(1 - momentum if Net.turned else momentum)
    net.train(*images(BATCH, 3), 0.0)
    after = {f"after.{key}": a for key, a in net.get().items() if key.startswith(("mean", "variance"))}
    said = {
        "outputs": y,
        "eps": eps,
        "weight": weight,
        "unbiased": Net.unbiased,
        "accuracy": (y.argmax(1) == kind).mean(),
    }
    np.savez(pathlib.Path(folder) / f"{name}.npz", **left, **after, **said)


def scaled(given, eps):
    """The same with γ' = γ sqrt((v + ε')/(v + ε)), for a layer whose ε' is another."""
    found = dict(given)
    for n in "12":
        v = np.asarray(given[f"variance{n}"], np.float64)
        found[f"scale{n}"] = given[f"scale{n}"] * np.sqrt((v + eps) / (v + given["eps"]))
    return found


def carry(Net, source):
    """How far the answers are from the source's by their largest size: carried as it is, with ε set, with γ changed;
    and the running statistics one batch later: means by the deviation, variances by their size, and these by formula."""
    arrays = [
        key for key in source if key[:-1] in ("scale", "shift", "mean", "variance", "dense", "bias")
    ] + ["conv"]
    x, _ = images(256, 2)

    def off(given, eps=None):
        net = made(Net, eps)
        net.put({key: given[key] for key in arrays})
        return float(np.abs(net.answers(x) - source["outputs"]).max() / np.abs(source["outputs"]).max())

    found = {
        "as_is": off(source),
        "epsilon_set": off(source, source["eps"]),
        "scaled": off(scaled(source, Net.defaults[0])),
    }
    net, w = made(Net, source["eps"], source["weight"]), float(source["weight"])
    net.put({key: source[key] for key in arrays})
    net.train(*images(BATCH, 3), 0.0)
    later, far = net.get(), {"mean": [], "variance": [], "by_formula": []}
    for n, m in SIZES.items():
        v, before, mine = (
            np.asarray(a, np.float64)
            for a in (source[f"after.variance{n}"], source[f"variance{n}"], later[f"variance{n}"])
        )
        factors = [m / (m - 1) if each else 1.0 for each in (source["unbiased"], Net.unbiased)]
        batch = (v - (1 - w) * before) / (w * factors[0])
        left = w * (factors[1] - factors[0]) * batch
        far["mean"].append(np.abs(later[f"mean{n}"] - source[f"after.mean{n}"]) / np.sqrt(v))
        far["variance"].append(np.abs(mine - v) / v)
        far["by_formula"].append(np.abs(mine - left - v) / v)
    return {**found, **{f"{key}_after": float(max(each.max() for each in of)) for key, of in far.items()}}


SAID = "epsilon momentum turned unbiased defaults last kernel dense names"


def main(Net, name, packages, doing, folder):
    """Train or carry, by a folder; prints one JSON object."""
    if doing == "train":
        train(Net, name, folder)
        found = {"trained": name}
    else:
        sources = {path.stem: dict(np.load(str(path))) for path in sorted(pathlib.Path(folder).glob("*.npz"))}
        found = {key: carry(Net, source) for key, source in sources.items()}
    document = {
        "name": name,
        "versions": versions(packages),
        "python": platform.python_version(),
        "said": {each: getattr(Net, each) for each in SAID.split()},
        "found": found,
    }
    print("\n" + json.dumps(document), flush=True)
