# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = ["onnxruntime==1.31.1", "onnx==1.23.2", "numpy==2.4.6"]
# ///
"""onnxruntime on the CPU: the same models as the reference's."""

import numpy as np
import onnxruntime
from questions import ask
from with_onnx_reference import Layer as Reference
from with_onnx_reference import model


class Layer(Reference):
    def run(self, x, training):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        text = model(x.shape, str(x.dtype), self.dtype, training).SerializeToString()
        session = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
        return session.run(
            None, dict(zip(["x", "scale", "offset", "mean", "var"], map(np.asarray, [x, *self.state])))
        )


if __name__ == "__main__":
    versions = {"onnxruntime": onnxruntime.__version__}
    ask(Layer, "onnxruntime", versions, eps_argument="epsilon", momentum_argument="momentum", momentum=0.9)
