"""ncnn's layer BatchNorm: it knows one example at a time, and no training."""

import tempfile
from pathlib import Path

import ncnn
import numpy as np
from questions import Inference


class Layer(Inference):
    last, half = False, False

    def __init__(self, channels, spatial, dtype="float32"):
        if dtype != "float32":
            raise NotImplementedError("absent: precision is an option of the whole network")
        self.state = [np.ones(channels), np.zeros(channels), np.ones(channels), np.zeros(channels)]

    @staticmethod
    def array(x, dtype):
        if dtype != "float32":
            raise NotImplementedError("absent: it takes float32 and converts inside")
        return np.ascontiguousarray(x, np.float32)

    @staticmethod
    def numbers(y):
        return np.asarray(y, np.float64)

    def evaluate(self, x):
        with tempfile.TemporaryDirectory() as folder:
            param, weights = Path(folder, "net.param"), Path(folder, "net.bin")
            param.write_text(
                f"7767517\n2 2\nInput in 0 1 in\nBatchNorm bn 1 1 in out 0={len(self.state[0])}\n"
            )
            weights.write_bytes(b"".join(np.asarray(each, np.float32).tobytes() for each in self.state))
            net = ncnn.Net()
            net.load_param(str(param))
            net.load_model(str(weights))
            return np.stack([self.one(net, example) for example in x])

    def one(self, net, example):
        run = net.create_extractor()
        run.input("in", ncnn.Mat(example).clone())
        return np.array(run.extract("out")[1])

    def statistics(self):
        return self.state[1], self.state[2]

    def set(self, mean, var):
        self.state[1:3] = mean, var
