"""Light the fuse: the gradient by layer, and its growth in a layer by batch size."""

from __future__ import annotations

from typing import Any

from bnbook.pipeline.explorers.drawn import recorded, rounded
from bnbook.results import Results


def fuse(results: Results) -> dict[str, Any]:
    """The measured networks of the chapter on exploding gradients: by layer, and their rate by batch size."""
    used = results.header["parameters"]
    sizes = used["batch_sizes"]
    names = ("relu", "tanh", "linear", "zigzag")
    layers = {
        kind: rounded(recorded(results, f"curve.layers.{kind}")) for kind in ("batch", "residual", "none")
    }
    measured = {
        name: {m: rounded(recorded(results, f"growth2.{name}.m{m}")) for m in sizes} for name in names
    }
    theory = {name: rounded(recorded(results, f"curve.rates.{name}")[0]) for name in names}
    return {
        "layers": {"depth": len(layers["batch"][0]), "size": 64, "width": used["deep_width"], **layers},
        "rates": {
            "layers": used["layers"],
            "sizes": rounded(recorded(results, "curve.rates.batch_sizes")[0]),
            "theory": theory,
            "measured": measured,
        },
    }
