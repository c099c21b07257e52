#!/usr/bin/env bash
# opacus 1.6.0 with torch 2.13.0: ModuleValidator.fix of a network with BatchNorm1d behind dense layers.
# Behaviour: batch norm becomes a group norm of min(32, C) groups. Behind a dense layer of C <= 32 units each group is one number, which is normalized
#   to zero: every input gets the same output. Behind 64 units a group is two numbers, which become +1 and -1. The validator then says the network is valid.
# Seen: "16 units: groups 16, outputs of two inputs differ by 5e-06 (before 0.28); 64 units: groups 32, median size of a normalized number 1.000; valid: True"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python 3.11 "$folder/env"
uv pip install -q --python "$folder/env/bin/python" opacus==1.6.0 torch==2.13.0 numpy==2.4.6 # a smaller build: UV_TORCH_BACKEND=cpu
cat > "$folder/try.py" <<'PY'
import torch
from opacus.validators import ModuleValidator
from torch import nn

torch.manual_seed(0)
x, found = 5 * torch.randn(8, 4), {}
for units in (16, 64):
    net = nn.Sequential(nn.Linear(4, units), nn.BatchNorm1d(units), nn.ReLU(), nn.Linear(units, 3))
    mended = ModuleValidator.fix(net)
    y, before, normal = mended(x), net(x), mended[1](mended[0](x)).abs()
    found[units] = mended[1].num_groups, (y[0] - y[1]).abs().max().item(), (before[0] - before[1]).abs().max().item(), normal.median().item()
    valid = ModuleValidator.is_valid(mended)
a, b = found[16], found[64]
print(f"16 units: groups {a[0]}, outputs of two inputs differ by {a[1]:.1g} (before {a[2]:.2g}); 64 units: groups {b[0]}, median size of a normalized number {b[3]:.3f}; valid: {valid}")
raise SystemExit(not (a[1] < 1e-3 < 0.1 < a[2] and b[0] == 32 and abs(b[3] - 1) < 0.01 and valid))
PY
"$folder/env/bin/python" "$folder/try.py"
