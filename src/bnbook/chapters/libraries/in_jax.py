"""Layers that run on jax, and the networks of flax, equinox and haiku."""

import jax
import jax.numpy as jnp
import numpy as np
from carrying import Carried

FULL = 10**6  # a counter at which the correction of the start is one


class Jax:
    """Base: `pure` is a batch in training that leaves the running statistics alone."""

    last = True

    @staticmethod
    def array(x, dtype):
        return jnp.asarray(x, dtype)

    @staticmethod
    def numbers(y):
        return np.asarray(y, np.float64)

    def gradient(self, x, w):
        return jax.grad(lambda x: (w * ((y := self.pure(x)) + y * y / 2)).sum())(x)

    def hessian(self, x, w, v):
        return jax.jvp(lambda x: self.gradient(x, w), (x,), (v,))[1]


class Linen(Jax):
    """flax.linen.BatchNorm."""

    options, training = {}, {"use_running_average": False, "mutable": ["batch_stats"]}

    def __init__(self, channels, spatial, dtype="float32"):
        from flax import linen

        own = {} if dtype == "float32" else {"dtype": dtype, "param_dtype": dtype}
        self.layer = linen.BatchNorm(**own, **self.options)
        shape = (1, 1, 1, channels) if spatial else (1, channels)
        self.state = self.layer.init(jax.random.key(0), jnp.zeros(shape), use_running_average=True)

    def pure(self, x, **more):
        return self.layer.apply(self.state, x, **self.training, **more)[0]

    def train(self, x):
        y, new = self.layer.apply(self.state, x, **self.training)
        self.state = {**self.state, **new}
        return y

    def evaluate(self, x):
        return self.layer.apply(self.state, x, use_running_average=True)

    def default(self, x):
        return self.layer.apply(self.state, x, mutable=["batch_stats"])[0]

    def statistics(self):
        return self.state["batch_stats"]["mean"], self.state["batch_stats"]["var"]

    def set(self, mean, var):
        self.state = {**self.state, "batch_stats": {"mean": jnp.asarray(mean), "var": jnp.asarray(var)}}

    def masked(self, x, keep):
        return self.pure(x, mask=jnp.asarray(keep)[:, None])


class CarefulLinen(Linen):
    options = {"use_fast_variance": False}


Linen.others = {"use_fast_variance=False": CarefulLinen}


class Nnx(Jax):
    """flax.nnx.BatchNorm."""

    options = {}

    def __init__(self, channels, spatial, dtype="float32"):
        from flax import nnx

        own = {} if dtype == "float32" else {"dtype": jnp.dtype(dtype), "param_dtype": jnp.dtype(dtype)}
        self.nnx, self.layer = nnx, nnx.BatchNorm(channels, rngs=nnx.Rngs(0), **own, **self.options)

    def train(self, x, **more):
        return self.layer(x, use_running_average=False, **more)

    def pure(self, x):
        return self.nnx.merge(*self.nnx.split(self.layer), copy=True)(x, use_running_average=False)

    def evaluate(self, x):
        return self.layer(x, use_running_average=True)

    def default(self, x):
        return self.layer(x)

    def statistics(self):
        return jnp.asarray(self.layer.mean[...]), jnp.asarray(self.layer.var[...])

    def set(self, mean, var):
        self.layer.mean[...], self.layer.var[...] = jnp.asarray(mean), jnp.asarray(var)

    def masked(self, x, keep):
        return self.train(x, mask=jnp.asarray(keep)[:, None])


class CarefulNnx(Nnx):
    options = {"use_fast_variance": False}


Nnx.others = {"use_fast_variance=False": CarefulNnx}


class Ema(Jax):
    """equinox.nn.BatchNorm with mode="ema", which is also the default, then with a warning."""

    last, mode = False, "ema"

    def __init__(self, channels, spatial, dtype="float32"):
        import equinox

        own = {} if dtype == "float32" else {"dtype": dtype}
        make = equinox.nn.make_with_state(equinox.nn.BatchNorm)
        self.layer, self.state = make(channels, axis_name="batch", mode=self.mode, **own)
        self.index = getattr(self.layer, f"{self.mode}_state_index")

    def run(self, x, inference):
        state = jax.tree.map(lambda leaf: leaf, self.state)  # a state may be used once
        call = lambda x: self.layer(x, state, inference=inference)
        return jax.vmap(call, axis_name="batch", out_axes=(0, None))(x)

    def pure(self, x):
        return self.run(x, False)[0]

    def train(self, x):
        y, self.state = self.run(x, False)
        return y

    def evaluate(self, x):
        return self.run(x, True)[0]

    def default(self, x):
        return self.run(x, None)[0]

    def statistics(self):
        return self.state.get(self.index)

    def set(self, mean, var):
        self.state = self.state.set(self.index, (jnp.asarray(mean), jnp.asarray(var)))


class Batch(Ema):
    """equinox.nn.BatchNorm with mode="batch"."""

    mode = "batch"


class Haiku(Jax):
    """haiku.BatchNorm; scale, offset and decay rate have no default."""

    def __init__(self, channels, spatial, dtype="float32"):
        import haiku

        run = lambda x, *training: haiku.BatchNorm(True, True, 0.9)(x, *training)
        self.net = haiku.transform_with_state(run)
        shape = (2, 2, 2, channels) if spatial else (2, channels)
        self.params, self.state = self.net.init(None, jnp.zeros(shape, dtype), True)

    def pure(self, x):
        return self.net.apply(self.params, self.state, None, x, True)[0]

    def train(self, x):
        y, self.state = self.net.apply(self.params, self.state, None, x, True)
        return y

    def evaluate(self, x):
        return self.net.apply(self.params, self.state, None, x, False)[0]

    def default(self, x):
        return self.net.init(None, x)

    def statistics(self):
        return tuple(self.state[f"batch_norm/~/{each}_ema"]["average"] for each in ("mean", "var"))

    def set(self, mean, var):
        for key, value in zip(("batch_norm/~/mean_ema", "batch_norm/~/var_ema"), (mean, var)):
            old = self.state[key]
            self.state[key] = {**old, "average": jnp.asarray(value).reshape(old["average"].shape)}


class JaxNet(Carried):
    """Base: `forward(params, state, x, training)` gives outputs and the new state."""

    last, kernel, dense = True, "HWIO", "io"

    def loss(self, params, state, x, target):
        y, new = self.forward(params, state, x, True)
        return -(target * jax.nn.log_softmax(y)).sum(1).mean(), new

    def compiled(self):
        return jax.jit(jax.grad(self.loss, has_aux=True))

    def evaluate(self, x):
        return self.forward(self.params, self.state, x, False)[0]

    def step(self, x, target, rate):
        grads, self.state = self.gradient(self.params, self.state, x, target)
        self.params = jax.tree.map(lambda p, g: p - rate * g, self.params, grads)


class LinenNet(JaxNet):
    epsilon, momentum, turned, unbiased, defaults = "epsilon", "momentum", True, False, (1e-5, 0.99)
    names = ["scale", "bias", "mean", "var"]

    def __init__(self, **own):
        from flax import linen as nn

        class Net(nn.Module):
            @nn.compact
            def __call__(self, x, training):
                norm = lambda: nn.BatchNorm(use_running_average=not training, **own)
                x = nn.relu(norm()(nn.Conv(4, (3, 3), padding="VALID", use_bias=False)(x)))
                x = nn.relu(norm()(nn.Dense(16, use_bias=False)(x.reshape(len(x), -1))))
                return nn.Dense(4)(x)

        self.net, self.gradient = Net(), self.compiled()
        state = self.net.init(jax.random.key(0), jnp.zeros((1, 8, 8, 1)), False)
        self.params, self.state = state["params"], state["batch_stats"]
        dense = {f"dense{n + 1}": (f"Dense_{n}", "kernel") for n in (0, 1)}
        self.keys = {"conv": ("Conv_0", "kernel"), **dense, "bias2": ("Dense_1", "bias")}
        self.keys.update(self.of_norms("BatchNorm_0", "BatchNorm_1"))

    def room(self, key):
        layer, name = self.keys[key]
        return (self.state if key.startswith(("mean", "variance")) else self.params)[layer], name

    def read(self):
        return {key: room[name] for key in self.keys for room, name in [self.room(key)]}

    def write(self, given):
        for key, a in given.items():
            room, name = self.room(key)
            room[name] = jnp.asarray(a)

    def forward(self, params, state, x, training):
        held = {"params": params, "batch_stats": state}
        if not training:
            return self.net.apply(held, x, False), state
        y, new = self.net.apply(held, x, True, mutable=["batch_stats"])
        return y, new["batch_stats"]


class EquinoxNet(JaxNet):
    """With mode="batch", which normalizes by the batch in training; params are the layers."""

    epsilon, momentum, turned, unbiased, defaults = "eps", "momentum", True, False, (1e-5, 0.99)
    last, kernel, dense = False, "OIHW", "oi"
    names = ["weight", "bias", "batch_state_index[0]", "batch_state_index[1]"]
    places = {"conv": (0, "weight"), "dense1": (2, "weight"), "dense2": (4, "weight"), "bias2": (4, "bias")}
    places.update(
        {"scale1": (1, "weight"), "shift1": (1, "bias"), "scale2": (3, "weight"), "shift2": (3, "bias")}
    )

    def __init__(self, **own):
        import equinox as eqx

        def make(norm):
            first, second = (norm(each, axis_name="batch", mode="batch", **own) for each in (4, 16))
            k, nn = jax.random.split(jax.random.key(0), 3), eqx.nn
            dense = nn.Linear(144, 16, use_bias=False, key=k[1]), second, nn.Linear(16, 4, key=k[2])
            return [nn.Conv2d(1, 4, 3, use_bias=False, key=k[0]), first, *dense]

        self.eqx, (self.params, self.state) = eqx, eqx.nn.make_with_state(make)(eqx.nn.BatchNorm)
        self.gradient = eqx.filter_jit(eqx.filter_grad(self.loss, has_aux=True))

    def forward(self, layers, state, x, training):
        def one(x):
            y, new = layers[1](layers[0](x), state, inference=not training)
            y, new = layers[3](layers[2](jax.nn.relu(y).ravel()), new, inference=not training)
            return layers[4](jax.nn.relu(y)), new

        return jax.vmap(one, axis_name="batch", out_axes=(0, None))(x)

    def norms(self):
        return ("1", self.params[1]), ("2", self.params[3])

    def read(self):
        found = {key: getattr(self.params[place], name) for key, (place, name) in self.places.items()}
        for n, norm in self.norms():
            count = self.state.get(norm.batch_counter)
            scale = 1 - norm.momentum**count if count else 1.0  # of what evaluation uses
            held = (each / scale for each in self.state.get(norm.batch_state_index))
            found.update(zip(("mean" + n, "variance" + n), held))
        return found

    def write(self, given):
        for key, (place, name) in self.places.items():
            if key in given:
                new = jnp.asarray(given[key])
                self.params[place] = self.eqx.tree_at(lambda m: getattr(m, name), self.params[place], new)
        for n, norm in self.norms() if "mean1" in given else ():
            held = jnp.asarray(given["mean" + n]), jnp.asarray(given["variance" + n])
            self.state = self.state.set(norm.batch_state_index, held).set(norm.batch_counter, jnp.array(FULL))

    def copied(self):
        return jax.tree.map(jnp.array, self.state)  # a state may be used once

    def evaluate(self, x):
        return self.forward(self.params, self.copied(), x, False)[0]

    def step(self, x, target, rate):
        grads, self.state = self.gradient(self.params, self.copied(), x, target)
        self.params = self.eqx.apply_updates(self.params, jax.tree.map(lambda g: -rate * g, grads))

    def next_weight(self, weight):
        return weight / (1 - (1 - weight) ** (1 + float(self.state.get(self.params[1].batch_counter))))


class HaikuNet(JaxNet):
    """With a decay rate of 0.9, for it has no default."""

    epsilon, momentum, turned, unbiased, defaults = "eps", "decay_rate", True, False, (1e-5, 0.9)
    names = ["scale", "offset", "mean_ema/average", "var_ema/average"]

    def __init__(self, **own):
        import haiku as hk

        def run(x, training):
            norm = lambda: hk.BatchNorm(True, True, **{"decay_rate": 0.9, **own})
            x = jax.nn.relu(norm()(hk.Conv2D(4, 3, padding="VALID", with_bias=False)(x), training))
            x = jax.nn.relu(norm()(hk.Linear(16, with_bias=False)(hk.Flatten()(x)), training))
            return hk.Linear(4)(x)

        self.net, self.gradient = hk.transform_with_state(run), self.compiled()
        self.params, self.state = self.net.init(jax.random.key(0), jnp.zeros((2, 8, 8, 1)), True)
        dense = {"dense1": ("linear", "w"), "dense2": ("linear_1", "w"), "bias2": ("linear_1", "b")}
        self.keys = {"conv": ("conv2_d", "w"), **dense}
        for n, layer in (("1", "batch_norm"), ("2", "batch_norm_1")):
            self.keys.update({"scale" + n: (layer, "scale"), "shift" + n: (layer, "offset")})
            self.keys["mean" + n] = (f"{layer}/~/mean_ema", "average")
            self.keys["variance" + n] = (f"{layer}/~/var_ema", "average")

    def read(self):
        both = {
            room: {**self.params.get(room, {}), **self.state.get(room, {})} for room, _ in self.keys.values()
        }
        return {key: both[room][name] for key, (room, name) in self.keys.items()}

    def write(self, given):
        for key, a in given.items():
            room, name = self.keys[key]
            new = jnp.asarray(a).reshape(self.read()[key].shape)
            if name == "average":  # the hidden sum is the average where the counter is large
                self.state[room] = {"average": new, "hidden": new, "counter": jnp.array(FULL)}
            else:
                self.params[room][name] = new

    def forward(self, params, state, x, training):
        return self.net.apply(params, state, None, x, training)

    def next_weight(self, weight):
        return weight / (1 - (1 - weight) ** (1 + float(self.state["batch_norm/~/mean_ema"]["counter"])))
