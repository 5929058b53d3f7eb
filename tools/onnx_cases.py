#!/usr/bin/env python3
"""onnx_cases.py DIR: writes the test cases of the installed Python package `onnx` into DIR, in the
form that `quern test-onnx` reads: KIND/NAME/model.onnx and test_data_set_*/input_0.pb, output_0.pb.
Cases are made by the package's own references; those that it keeps as files are copied."""

import os
import shutil
import sys

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test import loader
from onnx.backend.test.case import model as model_cases


def as_proto(value, info):
    """A value as the message that its type says."""
    kind = info.type.WhichOneof("value")
    if hasattr(value, "SerializeToString"):
        return value
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    return numpy_helper.from_array(numpy.asarray(value), info.name)


def write_case(case, folder):
    os.makedirs(folder)
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(case.model.SerializeToString())
    graph = case.model.graph
    for number, (inputs, outputs) in enumerate(case.data_sets):
        sets = os.path.join(folder, f"test_data_set_{number}")
        os.makedirs(sets)
        for what, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for i, value in enumerate(values):
                if value is None and infos[i].type.WhichOneof("value") != "optional_type":
                    continue
                with open(os.path.join(sets, f"{what}_{i}.pb"), "wb") as f:
                    f.write(as_proto(value, infos[i]).SerializeToString())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    shutil.rmtree(root, ignore_errors=True)
    made = list(loader.load_node_model_tests())
    made += [c for c in model_cases.collect_testcases() if c.kind != "real"]
    for case in made:
        write_case(case, os.path.join(root, case.kind, case.name))
    kept = 0
    for kind in ("pytorch-converted", "pytorch-operator", "simple", "light"):
        source = os.path.join(loader.DATA_DIR, kind)
        for name in sorted(os.listdir(source)) if os.path.isdir(source) else ():
            folder = os.path.join(source, name)
            to = os.path.join(root, kind, name)
            if os.path.exists(os.path.join(folder, "model.onnx")) and not os.path.exists(to):
                shutil.copytree(folder, to)
                kept += 1
    print(f"onnx {onnx.__version__}: {len(made)} cases made, {kept} copied to {root}")


if __name__ == "__main__":
    main()
