"""What every library's batch norm layer is asked: the same numbers for all, written out by formula; one JSON object.

A class of a file `in_NAME.py` beside this one is a library's layer: `Layer(channels, spatial, dtype)`, with `train`, `evaluate`,
`default`, `statistics`, `set`, `gradient`, `hessian`; last: channels stand last; `array` and `numbers` go there and back. Needs
NumPy and nothing of the book, for it runs in the library's own environment, from Python 3.8 on. An answer is a number or a list
as measured; where the library refuses, it is {"error": "Kind: first line"}; what it has not is {"absent": why}.
"""

import json
import math
import os
import platform
import re
import signal
from importlib import metadata

import numpy as np

RATIOS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)  # mean over deviation
HALVES = ("float16", "bfloat16")


def values(shape, phase=0.0):
    """Numbers in (-1, 1) without pattern: sin(2.3 k + 1.7 k² + phase), k = 1, 2, ..."""
    k = np.arange(1, math.prod(shape) + 1, dtype=np.float64)
    return np.sin(2.3 * k + 1.7 * k * k + phase).reshape(shape)


def batch(shape, mean, deviation, phase=0.0):
    """Float64 (B, C, ...) whose channels have exactly this mean and this deviation (with 1/m)."""
    x = values(shape, phase)
    axes = over(x)
    x = x - x.mean(axes, keepdims=True)
    return mean + deviation * x / np.sqrt(np.square(x).mean(axes, keepdims=True))


def over(x):
    """The axes of the statistics: all but the channels'."""
    return (0, *range(2, x.ndim))


def normalized(x, eps):
    """The formula (x - mean)/sqrt(var + eps), with 1/m, in float64."""
    x, axes = np.asarray(x, np.float64), over(x)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def gradient(x, w, eps):
    """Of f(x) = sum w (y + y²/2) through the formula."""
    x, axes = np.asarray(x, np.float64), over(x)
    y = normalized(x, eps)
    g = w * (1 + y)
    inner = g - g.mean(axes, keepdims=True) - y * (g * y).mean(axes, keepdims=True)
    return inner / np.sqrt(x.var(axes, keepdims=True) + eps)


def hessian(x, w, v, eps, step=1e-4):
    """Its Hessian times v, from differences of the gradient in float64."""
    return (gradient(x + step * v, w, eps) - gradient(x - step * v, w, eps)) / (2 * step)


def rounded(x, dtype):
    """Float32 numbers that the type holds exactly."""
    if dtype == "bfloat16":
        bits = np.asarray(x, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.asarray(x, dtype).astype(np.float32)


def kind(array):
    """The name of a library's type of numbers, such as float32."""
    name = str(getattr(array, "dtype", type(array).__name__)).lower().replace("half", "float16")
    found = re.search(r"b?float\d+", re.sub(r"float$", "float32", name))
    return found.group() if found else name


class Asked:
    """A fresh layer of the library, which speaks in arrays (B, C, ...) of NumPy."""

    def __init__(self, Layer, x, dtype="float32"):
        self.Layer, self.spatial, self.dtype = Layer, np.ndim(x) > 2, dtype
        self.layer = Layer(np.shape(x)[1], self.spatial, dtype)

    def hand(self, x, dtype=None):
        x = np.asarray(x, np.float32)
        return self.Layer.array(np.moveaxis(x, 1, -1) if self.Layer.last else x, dtype or self.dtype)

    def take(self, y):
        y = np.asarray(self.Layer.numbers(y), np.float64)
        return np.moveaxis(y, -1, 1) if self.Layer.last and y.ndim > 1 else y

    def train(self, x, dtype=None):
        return self.take(self.layer.train(self.hand(x, dtype)))

    def evaluate(self, x, dtype=None):
        return self.take(self.layer.evaluate(self.hand(x, dtype)))

    def statistics(self):
        return [np.asarray(self.Layer.numbers(each), np.float64).ravel() for each in self.layer.statistics()]


def error_of(y, exact):
    """Largest absolute error, NaN where an output is not finite."""
    return float(np.abs(y - exact).max()) if np.isfinite(y).all() else float("nan")


def epsilons(run):
    """ε of (d/y)² - d² = ε, if it stands under the root, and of d/y - d = ε, if beside it; at two deviations d."""
    found = []
    for d in (1e-3, 1e-2):
        x = d * np.tile([[1.0], [-1.0]], (2, 2))
        y = run(x, d)[0, 0]
        found.append([(d / y) ** 2 - d * d, d / y - d])
    return {"inside": [row[0] for row in found], "beside": [row[1] for row in found]}


def in_training(Layer):
    return epsilons(lambda x, d: Asked(Layer, x).train(x))


def in_evaluation(Layer):
    def run(x, d):
        asked = Asked(Layer, x)
        asked.layer.set(np.zeros(2, np.float32), np.full(2, d * d, np.float32))
        return asked.evaluate(x)

    return epsilons(run)


def weights(Layer):
    """By how much the running mean follows the newest batch at batch 1, 2, 10, and what is left of the one before."""

    def mean(*means):
        asked = Asked(Layer, np.zeros((4, 2)))
        for each in means:
            asked.train(batch((4, 2), each, 1.0))
        return float(asked.statistics()[0][0])

    new = [(mean(*[10] * n, 12) - mean(*[10] * n, 10)) / 2 for n in (0, 1, 9)]
    old = (mean(12, 10) - mean(10, 10)) / (mean(12) - mean(10))
    return {"new": new, "old": old, "after": [mean(*[10] * n) for n in (1, 2, 10, 100)]}


def factors(Layer):
    """The running variance over w times the variance with 1/m: 1, or m/(m - 1)."""
    found = factor(Layer, (4, 2))
    found = {"2d": found[0], "2d_mean_weight": found[1]}
    four = safely(lambda: {"4d": factor(Layer, (4, 2, 3, 3))[0]})
    found.update(four if "4d" in four else {"4d_refused": four})
    found["start"] = [float(each[0]) for each in Asked(Layer, np.zeros((4, 2))).statistics()]
    return found


def factor(Layer, shape):
    def after(mean, deviation):
        asked = Asked(Layer, np.zeros(shape))
        asked.train(batch(shape, mean, deviation))
        return [float(each[0]) for each in asked.statistics()]

    w = (after(2, 1)[0] - after(0, 1)[0]) / 2
    return (after(0, 2)[1] - after(0, 1)[1]) / (3 * w), w


def used(Layer, eps):
    """What evaluation subtracts and divides by after n batches of mean 10 and variance 1, by two of its outputs."""
    found = {}
    for n in (1, 2, 10, 100):
        asked = Asked(Layer, np.zeros((4, 2)))
        for _ in range(n):
            asked.train(batch((4, 2), 10.0, 1.0))
        y = asked.evaluate(np.array([[8.0, 8.0], [12.0, 12.0]]))[:, 0]
        slope = (y[1] - y[0]) / 4
        found[str(n)] = {"mean": float(8 - y[0] / slope), "variance": float(slope**-2 - eps)}
    return found


def tried(Layer, x, *, dtype=None):
    """Output and running statistics of one training step."""
    asked = Asked(Layer, x)
    y = asked.train(x, dtype)
    return {
        "output": y.ravel()[:4].tolist(),
        "shape": list(y.shape),
        "statistics": [each.tolist() for each in asked.statistics()],
    }


def alone(Layer):
    return {
        name: safely(tried, Layer, 5 * np.ones(shape))
        for name, shape in (("2d", (1, 2)), ("4d", (1, 2, 1, 1)))
    }


def empty(Layer):
    shapes = (("2d", (0, 2)), ("4d", (0, 2, 3, 3)))
    run = in_child if getattr(Layer, "ends", False) else safely
    return {name: run(tried, Layer, np.zeros(shape)) for name, shape in shapes}


def in_child(question, *arguments):
    """The answer of a process of its own, for a library that ends the process that asks."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, json.dumps(safely(question, *arguments)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    ended = os.waitpid(child, 0)[1] & 127
    return (
        json.loads(said) if said else {"error": f"the process ends by {signal.Signals(ended).name}: no words"}
    )


def far(Layer, eps):
    """By mean over deviation, of 16 channels: the largest error of an output, whose size is one, and how many channels
    are not finite; and what comes out at mean 10,000, deviation 0.01."""
    found = {}
    for name, shape in (("2d", (256, 16)), ("4d", (16, 16, 8, 8))):
        rows = [safely(astray, Layer, batch(shape, ratio, 1.0), eps) for ratio in RATIOS]
        found[name] = {
            "error": [row.get("error") for row in rows],
            "lost": [row.get("lost", row) for row in rows],
        }
    return {**found, "steep": safely(astray, Layer, batch((256, 16), 10_000, 0.01), eps)}


def astray(Layer, x, eps):
    x = x.astype(np.float32)
    asked = Asked(Layer, x)
    y, exact = asked.train(x), normalized(x, eps)
    fine = np.isfinite(y).all(over(x))
    error = np.abs(y - exact).max(over(x))[fine]
    return {
        "error": float(error.max()) if fine.any() else None,
        "lost": int((~fine).sum()),
        "deviation": float(y[:, 0].std()),
        "exact": float(exact[:, 0].std()),
        "variance": float(asked.statistics()[1][0]),
    }


def half(Layer, eps):
    """Types of output and statistics, with the layer as it comes and with its parameters in half precision, and what
    mean 30,000 gives."""
    found = {}
    for dtype in HALVES:
        for name, own in (("default", "float32"), ("cast", dtype)):
            found[f"{dtype}_{name}"] = safely(one_half, Layer, eps, dtype, own)
    return found


def one_half(Layer, eps, dtype, own):
    x = rounded(batch((64, 2), 0.0, 1.0), dtype)
    asked = Asked(Layer, x, own)
    y = asked.layer.train(asked.hand(x, dtype))
    found = {
        "output": kind(y),
        "statistics": [kind(each) for each in asked.layer.statistics()],
        "error": error_of(asked.take(y), normalized(x, eps)),
    }
    x = rounded(batch((64, 2), 30_000.0, 200.0), dtype)
    asked = Asked(Layer, x, own)
    y = asked.train(x, dtype)
    found["far"] = {
        "error": error_of(y, normalized(x, eps)),
        "deviation": float(y[:, 0].std()),
        "statistics": [float(each[0]) for each in asked.statistics()],
    }
    return found


def constant(Layer, eps):
    """Gradient of sum w (y + y²/2) where all values of a channel are 3."""
    x, w = np.full((4, 2), 3.0), values((4, 2))
    asked = Asked(Layer, x)
    found = asked.take(asked.layer.gradient(asked.hand(x), asked.hand(w)))
    exact = gradient(x, w, eps)
    return {
        "largest": float(np.abs(found).max()),
        "exact": float(np.abs(exact).max()),
        "error": error_of(found, exact) / float(np.abs(exact).max()),
    }


def untrained(Layer):
    """Evaluation of a layer that never saw a batch, at x = 2."""
    asked = Asked(Layer, np.zeros((4, 2)))
    return {"output": float(asked.evaluate(np.full((4, 2), 2.0))[0, 0])}


def masked(Layer, eps):
    """Whether the statistics are those of the rows that the mask leaves."""
    if not hasattr(Layer, "masked"):
        raise NotImplementedError("absent: it takes no mask")
    x, keep = batch((6, 2), 0.0, 1.0), np.array([1, 1, 1, 1, 0, 0], bool)
    asked = Asked(Layer, x)
    y = asked.take(asked.layer.masked(asked.hand(x), keep))
    kept, whole = normalized(x[:4], eps), normalized(x, eps)
    return {
        "scale": float((y[0] - y[1])[0]),
        "scale_of_kept": float((kept[0] - kept[1])[0]),
        "scale_of_all": float((whole[0] - whole[1])[0]),
    }


def second(Layer, eps):
    """Errors of gradient and of Hessian products through the training mode, over their length, at mean 0 and 5."""
    found = {}
    for mean in (0, 5):
        x, w, v = batch((8, 2), mean, 1.0).astype(np.float32), values((8, 2), 1.0), values((8, 2), 2.0)
        asked = Asked(Layer, x)
        given = [asked.hand(each) for each in (x, w, v)]
        first, exact = asked.take(asked.layer.gradient(*given[:2])), gradient(x, w, eps)
        found[f"gradient_mean{mean}"] = float(np.linalg.norm(first - exact) / np.linalg.norm(exact))
        product = safely(lambda: {"found": asked.take(asked.layer.hessian(*given))})
        exact = hessian(x, w, v, eps)
        found[f"product_mean{mean}"] = (
            float(np.linalg.norm(product["found"] - exact) / np.linalg.norm(exact))
            if "found" in product
            else product
        )
    return found


def axis(Layer):
    """Where the channels stand in four dimensions, confirmed by the running means of three channels; in two dimensions
    where the layer takes no more."""
    means = np.array([1.0, 2.0, 3.0])
    for shape, words in (((4, 3, 5, 5), ""), ((4, 3), ", of two")):
        x = batch(shape, 0.0, 1.0) + means.reshape(3, *[1] * (len(shape) - 2))
        asked = Asked(Layer, x)
        told = safely(lambda: {"y": asked.train(x)})
        if "y" in told:
            found = asked.statistics()[0]
            return {
                "channels": ("last" if Layer.last else "second") + words,
                "ratios": (found / found[0]).tolist(),
            }
    return told


def spoiled(Layer):
    """One NaN among eight examples, in channel 0, then 50 clean batches."""
    clean, asked = batch((8, 2), 0.0, 1.0), Asked(Layer, np.zeros((8, 2)))
    bad = clean.copy()
    bad[3, 0] = np.nan
    y = asked.train(bad)
    found = {
        "outputs_nan": int(np.isnan(y[:, 0]).sum()),
        "other_channel_nan": int(np.isnan(y[:, 1]).sum()),
        "after_1": [float(each[0]) for each in asked.statistics()],
    }
    for _ in range(50):
        asked.train(clean)
    found["after_51"] = [float(each[0]) for each in asked.statistics()]
    found["evaluates_nan"] = int(np.isnan(asked.evaluate(clean)[:, 0]).sum())
    return found


EPSILONS = (1e-5, 2e-5, 1e-3)  # of the libraries that a network may come from


def carried(Layer, eps):
    """A network that comes from a layer with another ε: convolution, this layer in evaluation, rectifier, mean over
    positions, dense layer; largest error of its outputs by their largest size, with the statistics taken over as they
    are, and with γ' = γ sqrt((v + ε')/(v + ε)). Convolution and dense layer are NumPy's."""
    x, kernel = values((16, 1, 8, 8)), values((4, 9), 1.0) * np.array([[0.003], [0.03], [0.3], [3.0]])
    windows = np.lib.stride_tricks.sliding_window_view(x[:, 0], (3, 3), (1, 2)).reshape(16, 6, 6, 9)
    maps = np.moveaxis(windows @ kernel.T, -1, 1)
    mean, var = maps.mean((0, 2, 3)), maps.var((0, 2, 3))
    asked = Asked(Layer, maps)
    asked.layer.set(mean.astype(np.float32), var.astype(np.float32))
    normal = asked.evaluate(maps)

    def rest(y):
        return np.maximum(y, 0).mean((2, 3)) @ values((4, 3), 2.0)

    found = {"variances": var.tolist(), "as_is": [], "by_formula": []}
    for source in EPSILONS:
        exact = rest((maps - mean[:, None, None]) / np.sqrt(var + source)[:, None, None])
        gamma = np.sqrt((var + eps) / (var + source))[:, None, None]
        for key, y in (("as_is", normal), ("by_formula", gamma * normal)):
            found[key].append(error_of(rest(y), exact) / float(np.abs(exact).max()))
    return found


def default(Layer):
    """What a fresh layer does that is told no mode: batch of mean 10."""
    x = batch((8, 2), 10.0, 2.0)
    asked = Asked(Layer, x)
    y = asked.take(asked.layer.default(asked.hand(x)))
    return {"output_mean": float(y[:, 0].mean()), "output_deviation": float(y[:, 0].std())}


def safely(question, *arguments):
    """The answer, or why there is none."""
    try:
        return question(*arguments)
    except Exception as raised:
        if isinstance(raised, (AttributeError, NotImplementedError)) and str(raised).startswith("absent"):
            return {"absent": str(raised)[8:]}
        text = (str(raised).strip() or "no words").splitlines()[0][:160]
        return {"error": f"{type(raised).__name__}: {text}"}


PLAIN = {
    "weights": weights, "variance": factors, "alone": alone, "empty": empty,
    "untrained": untrained, "axis": axis, "spoiled": spoiled, "default": default,
}  # fmt: skip
WITH_EPSILON = {
    "used": used, "carried": carried, "mask": masked, "far": far,
    "half": half, "constant": constant, "second": second,
}  # fmt: skip


def ask(Layer, name, packages):
    """Ask everything, and print one JSON object. A layer may have eps, where training and evaluation do not tell it, and
    others: {its words: a layer with this option}, asked about far means and half precision only."""
    np.seterr(all="ignore")
    found = {"training": safely(in_training, Layer), "evaluation": safely(in_evaluation, Layer)}
    told = [mode["inside"][0] for mode in found.values() if "inside" in mode]
    eps = getattr(Layer, "eps", told[0] if told else None)
    answers = {"epsilon": found, **{key: safely(question, Layer) for key, question in PLAIN.items()}}
    answers.update({key: safely(question, Layer, eps) for key, question in WITH_EPSILON.items()})
    for words, Other in getattr(Layer, "others", {}).items():
        answers[words] = {"far": safely(far, Other, eps), "half": safely(half, Other, eps)}
    document = {
        "name": name,
        "versions": versions(packages),
        "python": platform.python_version(),
        "answers": answers,
    }
    print("\n" + json.dumps(document, default=str), flush=True)


def versions(packages):
    return {each: metadata.version(each) for each in packages}


class Plain:
    """Base of those whose layer is called with a batch, and whose channels stand second."""

    last = False

    def run(self, x):
        return self.layer(x)

    default = run


class Switched(Plain):
    """Base of those that are switched between training and evaluation."""

    def train(self, x):
        self.layer.train()
        return self.run(x)

    def evaluate(self, x):
        self.layer.eval()
        return self.run(x)

    def default(self, x):
        return self.run(x)


class Inference:
    """Base of those that have no training: each question about it is absent."""

    def train(self, *arguments):
        raise NotImplementedError("absent: it has no training")

    gradient = hessian = default = train
