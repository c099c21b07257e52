#!/usr/bin/env bash
# torch 2.13.0 on a CPU: BatchNorm1d on bfloat16 numbers of mean 30,000 and deviation 200, with the layer's parameters in float32 (as under
#   autocast) and in bfloat16 (as after model.bfloat16()).
# Behaviour: inputs and outputs have the same type and size in both; the type of the parameters decides how exactly the batch is normalized.
#   The cast layer misses the exact outputs, whose size is one, by half a deviation, the other by a hundredth of that.
# Seen: "largest error: parameters in float32 0.0038, in bfloat16 0.4990"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python 3.11 "$folder/env"
uv pip install -q --python "$folder/env/bin/python" torch==2.13.0 numpy==2.4.6 # a smaller build: UV_TORCH_BACKEND=cpu
cat > "$folder/try.py" <<'PY'
import torch

k = torch.arange(256.0)
x = (30000 + 200 * torch.sin(2.3 * k + 1.7 * k * k)).reshape(64, 4).bfloat16()
exact = torch.nn.BatchNorm1d(4).double()(x.double())
errors = [(layer(x).double() - exact).abs().max().item() for layer in (torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4).bfloat16())]
print(f"largest error: parameters in float32 {errors[0]:.4f}, in bfloat16 {errors[1]:.4f}")
raise SystemExit(not (errors[0] < 0.01 and errors[1] > 0.1))
PY
"$folder/env/bin/python" "$folder/try.py"
