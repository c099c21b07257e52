#!/usr/bin/env bash
# torch 2.13.0 on a CPU: BatchNorm2d in float32 on one batch whose mean is 10,000 times its deviation, in the usual layout and in channels_last.
# Behaviour: the numbers are the same and only their order in memory differs; the error of the outputs, whose size is one, is several times as large in
#   channels_last, where another kernel adds up the mean.
# Seen: "largest error: contiguous 0.00091, channels_last 0.0067"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python 3.11 "$folder/env"
uv pip install -q --python "$folder/env/bin/python" torch==2.13.0 numpy==2.4.6 # a smaller build: UV_TORCH_BACKEND=cpu
cat > "$folder/try.py" <<'PY'
import torch

x = torch.sin(torch.arange(16 * 16 * 64.0) * 2.3).reshape(16, 16, 8, 8) + 1e4
exact = torch.nn.BatchNorm2d(16).double()(x.double())
errors = [(torch.nn.BatchNorm2d(16)(x.to(memory_format=layout)) - exact).abs().max().item() for layout in (torch.contiguous_format, torch.channels_last)]
print(f"largest error: contiguous {errors[0]:.2g}, channels_last {errors[1]:.2g}")
raise SystemExit(not errors[1] > 3 * errors[0])
PY
"$folder/env/bin/python" "$folder/try.py"
