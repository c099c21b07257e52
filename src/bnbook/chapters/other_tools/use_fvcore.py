# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "fvcore==0.1.5.post20221221"]
# ///
"""fvcore: operations of a trace."""

import importlib.metadata

from fvcore.nn import FlopCountAnalysis
from network import ask


def use(net, x, t):
    return {"count": float(FlopCountAnalysis(net, x).total())}


if __name__ == "__main__":
    ask(use, "fvcore", {"fvcore": importlib.metadata.version("fvcore")})
