# /// script
# requires-python = ">=3.12,<3.14"
# dependencies = ["equinox==0.13.8", "jax==0.12.0.1", "numpy==2.4.6"]
# ///
"""equinox.nn.BatchNorm with mode="batch"."""

import equinox
import jax
from questions import ask
from with_equinox_ema import Layer as Ema


class Layer(Ema):
    mode = "batch"


if __name__ == "__main__":
    ask(
        Layer,
        "equinox-batch",
        {"equinox": equinox.__version__, "jax": jax.__version__},
        eps_argument="eps",
        momentum_argument="momentum",
        momentum=0.99,
    )
