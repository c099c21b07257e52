# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "calflops==0.3.2", "transformers==5.24.0"]
# ///
"""calflops: multiplications with additions; it imports transformers, which it does not name among its requirements."""

import importlib.metadata

from calflops import calculate_flops
from network import ask


def use(net, x, t):
    found = calculate_flops(net, input_shape=tuple(x.shape), print_results=False, output_as_string=False)
    return {"count": float(found[1])}


if __name__ == "__main__":
    ask(use, "calflops", {"calflops": importlib.metadata.version("calflops")})
