#!/usr/bin/env bash
# torch 2.13.0: torch.func.replace_all_batch_norm_modules_, which the documentation recommends before torch.func, on a trained network in evaluation.
# Behaviour: the running statistics are dropped in evaluation mode, too, so that the network then normalizes by the batch: its answers are those of training, an
#   example's answer depends on its batch, and the statistics are gone from its state. The mode still says evaluation.
# Seen: "training: False; off its own answers by 1.5, off those of training by 0; an answer changes with its batch by 0.37; state: weight bias"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python 3.11 "$folder/env"
uv pip install -q --python "$folder/env/bin/python" torch==2.13.0 numpy==2.4.6 # a smaller build: UV_TORCH_BACKEND=cpu
cat > "$folder/try.py" <<'PY'
import copy

import torch
from torch import nn

torch.manual_seed(0)
net, x = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3)), 3 * torch.randn(8, 4) + 2
for _ in range(20):
    net(torch.randn(8, 4))
trained, own = copy.deepcopy(net).train()(x), net.eval()(x)
torch.func.replace_all_batch_norm_modules_(net)
off = [(net(x) - y).abs().max().item() for y in (own, trained)]
apart = (net(x)[:4] - net(torch.cat([x[:4], 2 * x[4:]]))[:4]).abs().max().item()
print(f"training: {net.training}; off its own answers by {off[0]:.2g}, off those of training by {off[1]:.2g}; an answer changes with its batch by {apart:.2g}; state: {' '.join(net[0].state_dict())}")
raise SystemExit(not (not net.training and off[0] > 0.1 > 1e-6 > off[1] and apart > 0.1 and list(net[0].state_dict()) == ["weight", "bias"]))
PY
"$folder/env/bin/python" "$folder/try.py"
