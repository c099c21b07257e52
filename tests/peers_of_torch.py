"""Write the cases of torch's own tests of normalization into a file: python peers_of_torch.py FILE.

A process of its own, for these internals change torch's global flags when they are imported. They ask for
`expecttest`, of which only the name of one class is used; an empty module stands in for it.
"""

from __future__ import annotations

import sys
import types
import unittest

KINDS = ("BatchNorm", "GroupNorm", "LayerNorm", "InstanceNorm")


def cases() -> dict[str, list[dict]]:
    """Class -> its module inputs in float64: arguments and input."""
    try:
        import expecttest  # noqa: F401
    except ImportError:
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase = unittest.TestCase
    import torch
    from torch.testing._internal import common_modules

    torch.manual_seed(0)
    how = dict(device="cpu", dtype=torch.float64, requires_grad=False, training=True)
    found: dict[str, list[dict]] = {}
    for info in common_modules.module_db:
        cls = info.module_cls
        if cls.__name__.startswith("Lazy") or not any(kind in cls.__name__ for kind in KINDS):
            continue
        rows = found.setdefault(cls.__name__, [])
        for given in info.module_inputs_func(info, **how):
            made, forward = given.constructor_input, given.forward_input
            row = {"desc": given.desc or "plain", "args": made.args, "kwargs": made.kwargs, "error": ""}
            rows.append(row | {"inputs": forward.args})
        refused = info.module_error_inputs_func(info, **how) if info.module_error_inputs_func else ()
        for each in refused:
            made, forward = each.module_error_input.constructor_input, each.module_error_input.forward_input
            rows.append(
                {"desc": "error", "args": made.args, "kwargs": made.kwargs, "error": each.error_regex}
            )
            rows[-1] |= {"inputs": forward.args if forward else ()}
    return found


if __name__ == "__main__":
    listed = cases()
    import torch

    torch.save(listed, sys.argv[1])
