"""The same models of one node in the reference evaluator of onnx, in onnxruntime and in openvino: BatchNormalization of opset 15."""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from questions import Inference

NAMES = ["x", "scale", "offset", "mean", "var"]
ONNX = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


def model(shape, of_x, of_parameters, training):
    """One node with all its inputs; in training three outputs."""
    more = ["y", "new_mean", "new_var"] if training else ["y"]
    node = helper.make_node("BatchNormalization", NAMES, more, **({"training_mode": 1} if training else {}))

    def info(name):
        kind, size = (of_x, shape) if name in "xy" else (of_parameters, shape[1:2])
        return helper.make_tensor_value_info(name, ONNX[kind], size)

    graph = helper.make_graph([node], "g", [info(n) for n in NAMES], [info(n) for n in more])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


class Reference(Inference):
    """The reference evaluator of onnx, with training_mode=1 in training."""

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
        made = model(x.shape, str(x.dtype), self.dtype, training)
        return self.outputs(made, dict(zip(NAMES, map(np.asarray, [x, *self.state]))))

    def outputs(self, made, inputs):
        return ReferenceEvaluator(made).run(None, inputs)

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


class Runtime(Reference):
    """onnxruntime on the CPU."""

    def outputs(self, made, inputs):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(
            made.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return session.run(None, inputs)


class Openvino(Reference):
    """openvino on the CPU."""

    precision = {}

    def outputs(self, made, inputs):
        import openvino

        core = openvino.Core()
        compiled = core.compile_model(core.read_model(made.SerializeToString()), "CPU", self.precision)
        known = {n for i in compiled.inputs for n in i.names}
        found = compiled({k: v for k, v in inputs.items() if k in known})
        held = {output: found[output].copy() for output in compiled.outputs}
        # it hands the bits of bfloat16 over as float16
        bfloat = lambda output: output.element_type == openvino.Type.bf16
        return [each.view(ml_dtypes.bfloat16) if bfloat(output) else each for output, each in held.items()]


class Full(Openvino):
    precision = {"INFERENCE_PRECISION_HINT": "f32"}


Openvino.others = {"INFERENCE_PRECISION_HINT=f32": Full}
