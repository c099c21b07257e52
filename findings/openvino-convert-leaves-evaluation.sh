#!/usr/bin/env bash
# openvino 2026.4.1 with torch 2.13.0: openvino.convert_model of a network with BatchNorm2d that is in training mode.
# Behaviour: the converted model computes the evaluation mode, and the caller's network is left in evaluation mode with all its layers, so that a
#   training that goes on behind the conversion no longer moves its running statistics and normalizes by them.
# Seen: "training before: True, after: False; statistics moved: False; off evaluation by 0.004, off training by 1.4"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python 3.11 "$folder/env"
uv pip install -q --python "$folder/env/bin/python" openvino==2026.4.1 torch==2.13.0 numpy==2.4.6
cat > "$folder/try.py" <<'PY'
import copy

import openvino
import torch

torch.manual_seed(0)
net, x = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU()), torch.randn(8, 1, 6, 6)
for _ in range(5):
    net(torch.randn(8, 1, 6, 6) + 1)
before, was = copy.deepcopy(net), net.training
converted = openvino.compile_model(openvino.convert_model(net, example_input=x), "CPU")
y, moved = torch.tensor(converted(x.numpy())[0]), not torch.equal(net[1].running_mean, before[1].running_mean)
off = [(y - getattr(copy.deepcopy(before), mode)()(x)).abs().max().item() for mode in ("eval", "train")]
print(f"training before: {was}, after: {net.training}; statistics moved: {moved}; off evaluation by {off[0]:.2g}, off training by {off[1]:.2g}")
raise SystemExit(not (was and not net.training and not moved and off[0] < 0.05 < off[1]))
PY
"$folder/env/bin/python" "$folder/try.py" | tail -1
