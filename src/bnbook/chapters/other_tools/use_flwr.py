# /// script
# requires-python = "==3.11.*"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "setuptools==80.9.0", "flwr==1.42.0"]
# ///
"""flwr: FedAvg's aggregation of two clients' state, of 100 and 300 examples, the second larger by one."""

import importlib.metadata

import numpy as np
from flwr.server.strategy.aggregate import aggregate
from network import ask


def use(net, x, t):
    first = [each.numpy() for each in net.state_dict().values()]
    new = aggregate([(first, 100), ([each + 1 for each in first], 300)])
    moved = {name: float(np.mean(b - a)) for name, a, b in zip(net.state_dict(), first, new)}
    found = {
        key: moved[f"1.{key}"] for key in ("weight", "running_mean", "running_var", "num_batches_tracked")
    }
    kind = new[list(moved).index("1.num_batches_tracked")].dtype
    return {
        "weights_moved_by": found["weight"],
        "statistics_moved_by": found["running_mean"],
        "said": f"variances {found['running_var']:.2g}, the counter {found['num_batches_tracked']:.2g} as {kind}",
    }


if __name__ == "__main__":
    ask(use, "flwr", {"flwr": importlib.metadata.version("flwr")})
