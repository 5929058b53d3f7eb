#!/usr/bin/env python3
"""Models for bench/onnx.py: other batch sizes of files that are made for one, and an encoder of
BERT-base's shape (12 layers of 768, 12 heads) with random weights.

onnx_models.py batch IN.onnx OUT.onnx N | encoder OUT.onnx [TOKENS]"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def with_batch(model, n):
    """The first dim of every input and output, and of what Reshape makes, becomes n."""
    graph = model.graph
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for value in list(graph.input) + list(graph.output):
        dims = value.type.tensor_type.shape.dim
        if len(dims) and dims[0].dim_value == 1:
            dims[0].dim_value = n
    for init in graph.initializer:
        if init.name not in shapes:
            continue
        v = numpy_helper.to_array(init).copy()
        if v.size and v[0] == 1:
            v[0] = n
            init.CopyFrom(numpy_helper.from_array(v, init.name))
    for node in graph.node:
        if node.op_type == "Constant" and node.output[0] in shapes:
            v = numpy_helper.to_array(node.attribute[0].t).copy()
            if v.size and v[0] == 1:
                v[0] = n
                node.attribute[0].t.CopyFrom(numpy_helper.from_array(v))
    del graph.value_info[:]
    return model


class Encoder:
    def __init__(self, tokens, width=768, heads=12, layers=12):
        self.rng = np.random.default_rng(1)
        self.nodes, self.inits, self.count = [], [], 0
        self.tokens, self.width, self.heads = tokens, width, heads
        x = "x"
        for _ in range(layers):
            x = self.layer(x)
        self.nodes.append(helper.make_node("Identity", [x], ["y"]))

    def weight(self, *shape, scale=0.02):
        name = f"w{len(self.inits)}"
        v = (self.rng.standard_normal(shape) * scale).astype(np.float32)
        self.inits.append(numpy_helper.from_array(v, name))
        return name

    def constant(self, v):
        name = f"c{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(np.asarray(v), name))
        return name

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        out = f"v{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attributes))
        return out

    def linear(self, x, n_in, n_out):
        return self.op("Add", self.op("MatMul", x, self.weight(n_in, n_out)), self.weight(n_out))

    def heads_of(self, x, perm):
        shape = self.constant(np.array([-1, self.tokens, self.heads, self.width // self.heads]))
        return self.op("Transpose", self.op("Reshape", x, shape), perm=perm)

    def norm(self, x):
        one = self.constant(np.ones(self.width, np.float32))
        return self.op("LayerNormalization", x, one, self.weight(self.width), axis=-1,
                       epsilon=1e-12)

    def layer(self, x):
        w = self.width
        q = self.heads_of(self.linear(x, w, w), [0, 2, 1, 3])
        k = self.heads_of(self.linear(x, w, w), [0, 2, 3, 1])
        v = self.heads_of(self.linear(x, w, w), [0, 2, 1, 3])
        scale = self.constant(np.float32((w // self.heads) ** -0.5))
        scores = self.op("Softmax", self.op("Mul", self.op("MatMul", q, k), scale), axis=-1)
        y = self.op("Transpose", self.op("MatMul", scores, v), perm=[0, 2, 1, 3])
        y = self.op("Reshape", y, self.constant(np.array([-1, self.tokens, w])))
        x = self.norm(self.op("Add", x, self.linear(y, w, w)))
        h = self.linear(x, w, 4 * w)
        half = self.op("Mul", h, self.constant(np.float32(0.5)))
        e = self.op("Erf", self.op("Mul", h, self.constant(np.float32(2 ** -0.5))))
        h = self.op("Mul", half, self.op("Add", e, self.constant(np.float32(1))))
        return self.norm(self.op("Add", x, self.linear(h, 4 * w, w)))

    def model(self):
        kind = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, self.tokens, self.width])
        out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, self.tokens, self.width])
        graph = helper.make_graph(self.nodes, "encoder", [kind], [out], self.inits)
        return helper.make_model(graph, ir_version=8,
                                 opset_imports=[helper.make_opsetid("", 17)])


def main():
    if sys.argv[1] == "batch":
        onnx.save(with_batch(onnx.load(sys.argv[2]), int(sys.argv[4])), sys.argv[3])
    else:
        onnx.save(Encoder(int(sys.argv[3]) if len(sys.argv) > 3 else 128).model(), sys.argv[2])


if __name__ == "__main__":
    main()
