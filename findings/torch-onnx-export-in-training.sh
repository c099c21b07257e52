#!/usr/bin/env bash
# torch 2.13.0 with onnx 1.23.2, onnxscript 0.7.2 and onnxruntime 1.31.1 (CPU): torch.onnx.export of a convolution and BatchNorm2d in training mode.
# Behaviour: the exporter that is the default (dynamo=True) writes the evaluation mode, folded into the convolution, though the network is in
#   training mode. The older one (dynamo=False, training=PRESERVE) writes the training mode, and its trace moves the running statistics of the
#   network that is exported.
# Seen: "default: off evaluation by 2e-07, off training by 1, nodes Conv Relu, moved nothing; older: off evaluation by 1, off training by 2e-07, nodes
#   Conv BatchNormalization Relu, moved 1.running_mean 1.running_var 1.num_batches_tracked"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python 3.11 "$folder/env"
uv pip install -q --python "$folder/env/bin/python" torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.31.1 numpy==2.4.6
cat > "$folder/try.py" <<'PY'
import copy
import sys
import warnings

import onnx
import onnxruntime
import torch

warnings.simplefilter("ignore")
torch.manual_seed(0)
net, x = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU()), torch.randn(8, 1, 6, 6)
for _ in range(5):
    net(torch.randn(8, 1, 6, 6) + 1)
fine, words = [], []
for name, options in {"default": {}, "older": dict(dynamo=False, training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)}.items():
    net.train()
    before = copy.deepcopy(net)
    torch.onnx.export(net, (x,), sys.argv[1], verbose=False, **options)
    moved = [key for key, value in net.state_dict().items() if not torch.equal(value, before.state_dict()[key])]
    session = onnxruntime.InferenceSession(sys.argv[1])
    y = torch.tensor(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0])
    off = {mode: (y - getattr(copy.deepcopy(before), mode)()(x)).abs().max().item() for mode in ("eval", "train")}
    nodes = " ".join(node.op_type for node in onnx.load(sys.argv[1]).graph.node)
    words.append(f"{name}: off evaluation by {off['eval']:.1g}, off training by {off['train']:.1g}, nodes {nodes}, moved {' '.join(moved) or 'nothing'}")
    fine.append(off["eval"] < 1e-5 < off["train"] and not moved if name == "default" else off["train"] < 1e-5 < off["eval"] and len(moved) == 3)
print("; ".join(words))
raise SystemExit(not all(fine))
PY
"$folder/env/bin/python" "$folder/try.py" "$folder/net.onnx" | tail -1
