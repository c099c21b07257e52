#!/usr/bin/env bash
# fvcore 0.1.5.post20221221 with torch 2.13.0: FlopCountAnalysis of a network with batch norm, in training mode and in evaluation.
# Behaviour: the count depends on the mode, since batch norm counts for more in training; and in training mode the count is a pass: it moves the running
#   statistics of the network that is counted, and its counter of batches.
# Seen: "training 6272, evaluation 4928; batch norm alone 2240 and 896; in training the running mean moved: True, batches counted 1; in evaluation: False, 0"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python 3.11 "$folder/env"
uv pip install -q --python "$folder/env/bin/python" fvcore==0.1.5.post20221221 torch==2.13.0 numpy==2.4.6 # a smaller build: UV_TORCH_BACKEND=cpu
cat > "$folder/try.py" <<'PY'
import logging

import torch
from fvcore.nn import FlopCountAnalysis
from torch import nn

logging.disable()
counts, moved = [], []
for training in (True, False):
    net = nn.Sequential(nn.Conv2d(1, 7, 3), nn.BatchNorm2d(7), nn.ReLU()).train(training)
    found = FlopCountAnalysis(net, torch.randn(4, 1, 6, 6))
    counts.append((int(found.total()), int(found.by_operator()["batch_norm"])))
    moved.append((bool(net[1].running_mean.abs().max() > 0), int(net[1].num_batches_tracked)))
(a, b), (c, d) = counts, moved
print(f"training {a[0]}, evaluation {b[0]}; batch norm alone {a[1]} and {b[1]}; in training the running mean moved: {c[0]}, batches counted {c[1]}; in evaluation: {d[0]}, {d[1]}")
raise SystemExit(not (a[0] > b[0] and a[1] > b[1] and c[0] and c[1] > 0 and d == (False, 0)))
PY
"$folder/env/bin/python" "$folder/try.py"
