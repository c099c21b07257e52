# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["onnx==1.23.2", "numpy==2.4.6"]
# ///
"""The reference evaluator of onnx: BatchNormalization of opset 15, with training_mode=1 in training."""

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from questions import Inference, ask

ONNX = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


def model(shape, of_x, of_parameters, training):
    """One node with all its inputs; in training three outputs."""
    names = ["x", "scale", "offset", "mean", "var"]
    more = ["y", "new_mean", "new_var"] if training else ["y"]
    node = helper.make_node("BatchNormalization", names, more, **({"training_mode": 1} if training else {}))

    def info(name):
        kind, size = (of_x, shape) if name in "xy" else (of_parameters, shape[1:2])
        return helper.make_tensor_value_info(name, ONNX[kind], size)

    graph = helper.make_graph([node], "g", [info(n) for n in names], [info(n) for n in more])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


class Layer(Inference):
    last = False

    def __init__(self, channels, spatial, dtype="float32"):
        self.dtype, kind = dtype, self.array(np.zeros(0), dtype).dtype
        self.state = [np.full(channels, each, kind) for each in (1, 0, 0, 1)]

    @staticmethod
    def array(x, dtype):
        return np.asarray(x).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)

    @staticmethod
    def numbers(y):
        return np.asarray(y, np.float64)

    def run(self, x, training):
        session = ReferenceEvaluator(model(x.shape, str(x.dtype), self.dtype, training))
        return session.run(None, dict(zip(["x", "scale", "offset", "mean", "var"], [x, *self.state])))

    def train(self, x):
        y, *self.state[2:] = self.run(x, True)
        return y

    def evaluate(self, x):
        return self.run(x, False)[0]

    default = evaluate

    def statistics(self):
        return tuple(self.state[2:])

    def set(self, mean, var):
        self.state[2:] = [np.asarray(mean), np.asarray(var)]


if __name__ == "__main__":
    ask(
        Layer,
        "onnx-reference",
        {"onnx": onnx.__version__},
        eps_argument="epsilon",
        momentum_argument="momentum",
        momentum=0.9,
    )
