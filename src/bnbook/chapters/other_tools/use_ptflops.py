# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "ptflops==0.7.5"]
# ///
"""ptflops: operations by its default counter."""

import importlib.metadata

from network import ask, patched_for_torchvision

patched_for_torchvision()
import ptflops  # noqa: E402


def use(net, x, t):
    return {
        "count": float(
            ptflops.get_model_complexity_info(net, (1, 6, 6), as_strings=False, print_per_layer_stat=False)[0]
        )
    }


if __name__ == "__main__":
    ask(use, "ptflops", {"ptflops": importlib.metadata.version("ptflops")})
