#!/usr/bin/env bash
# mlx 0.32.4 (CPU), Python 3.11 to 3.13: batch norm of float16 inputs with mean 30,000 and deviation 200.
# Behaviour: the mean over the batch is summed in float16 and is infinite, although each value, the mean and the variance fit into the
#   type; outputs are NaN and the running statistics infinite from then on, although outputs and statistics are float32. Layer norm of the
#   same numbers is finite. In bfloat16 the mean is finite.
# Seen: "float16: output nan, running mean inf (mlx.core.float32); bfloat16: running mean 2992.0; layer norm finite: True"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python '>=3.11,<3.14' "$folder/env"
uv pip install -q --python "$folder/env/bin/python" "mlx[cpu]==0.32.4" numpy==2.4.6
cat > "$folder/try.py" <<'PY'
import mlx.core as mx
import numpy as np
from mlx import nn

k = np.arange(256.0)
x = (30000 + 200 * np.sin(2.3 * k + 1.7 * k * k)).reshape(64, 4).astype(np.float32)
half, layer = mx.array(x).astype(mx.float16), nn.BatchNorm(4)
y = np.array(layer(half).astype(mx.float32))
mean = np.array(layer.running_mean)
other = nn.BatchNorm(4)
other(mx.array(x).astype(mx.bfloat16))
fine = np.isfinite(np.array(nn.LayerNorm(4)(half).astype(mx.float32))).all()
words = f"float16: output {y[0, 0]}, running mean {mean[0]} ({layer.running_mean.dtype}); bfloat16: running mean {np.array(other.running_mean)[0]}; layer norm finite: {fine}"
print(words)
raise SystemExit(not (np.isnan(y).all() and np.isinf(mean).all() and np.isfinite(np.array(other.running_mean)).all() and fine))
PY
"$folder/env/bin/python" "$folder/try.py" | cat
