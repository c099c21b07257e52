# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["openvino==2026.4.1", "onnx==1.23.2", "numpy==2.4.6"]
# ///
"""openvino on the CPU: it reads the same models as the reference's."""

import ml_dtypes
import openvino
from questions import ask
from with_onnx_reference import Layer as Reference
from with_onnx_reference import model


class Layer(Reference):
    precision = {}

    def run(self, x, training):
        core = openvino.Core()
        read = core.read_model(model(x.shape, str(x.dtype), self.dtype, training).SerializeToString())
        compiled = core.compile_model(read, "CPU", self.precision)
        inputs = dict(zip(["x", "scale", "offset", "mean", "var"], [x, *self.state]))
        found = compiled(
            {k: v for k, v in inputs.items() if k in {n for i in compiled.inputs for n in i.names}}
        )
        held = {output: found[output].copy() for output in compiled.outputs}
        bfloat = lambda output: (
            output.element_type == openvino.Type.bf16
        )  # it hands their bits over as float16
        return [each.view(ml_dtypes.bfloat16) if bfloat(output) else each for output, each in held.items()]


class Full(Layer):
    precision = {"INFERENCE_PRECISION_HINT": "f32"}


if __name__ == "__main__":
    versions = {"openvino": openvino.__version__.split("-")[0]}
    options = {"INFERENCE_PRECISION_HINT=f32": Full}
    ask(
        Layer,
        "openvino",
        versions,
        options,
        eps_argument="epsilon",
        momentum_argument="momentum",
        momentum=0.9,
    )
