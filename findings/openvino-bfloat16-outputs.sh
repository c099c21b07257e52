#!/usr/bin/env bash
# openvino 2026.4.1, onnx 1.23.2, ml_dtypes 0.5.4: a model of batch norm whose numbers are bfloat16, run from NumPy.
# Behaviour: the outputs come as arrays of float16 that hold the bits of bfloat16, so that a 1 reads as 1.875. Read as bfloat16 they are right.
# Seen: "outputs of type float16: off by 1.4; the same bits as bfloat16: off by 0.0036"
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
uv venv -q --python '>=3.11,<3.14' "$folder/env"
uv pip install -q --python "$folder/env/bin/python" openvino==2026.4.1 onnx==1.23.2 ml_dtypes==0.5.4 numpy==2.4.6
cat > "$folder/try.py" <<'PY'
import ml_dtypes
import numpy as np
import openvino
from onnx import TensorProto, helper, numpy_helper

kind, C = TensorProto.BFLOAT16, 4
x = np.sin(2.3 * np.arange(1, 33)).reshape(8, C).astype(ml_dtypes.bfloat16)
held = {"scale": np.ones(C), "shift": np.zeros(C), "mean": np.full(C, 0.25), "var": np.full(C, 0.5)}
node = helper.make_node("BatchNormalization", ["x", *held], ["y"])
ends = [helper.make_tensor_value_info(n, kind, (8, C)) for n in "xy"]
graph = helper.make_graph([node], "g", ends[:1], ends[1:], [numpy_helper.from_array(v.astype(ml_dtypes.bfloat16), k) for k, v in held.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
compiled = openvino.Core().compile_model(openvino.Core().read_model(model.SerializeToString()), "CPU")
y, exact = compiled(x)[0], (x.astype(float) - 0.25) / np.sqrt(0.5 + 1e-5)
off = [np.abs(each.astype(float) - exact).max() for each in (y, y.view(ml_dtypes.bfloat16))]
print(f"outputs of type {y.dtype}: off by {off[0]:.2g}; the same bits as bfloat16: off by {off[1]:.2g}")
raise SystemExit(not (y.dtype == np.float16 and off[0] > 0.1 and off[1] < 0.02))
PY
"$folder/env/bin/python" "$folder/try.py"
