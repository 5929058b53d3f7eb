#!/usr/bin/env python3
"""ONNX Runtime or OpenVINO on a model: from the start to the first answer, then runs.

onnx_rows.py ort|openvino MODEL THREADS SECONDS [INPUT=FILE.npy …]; prints one JSON object, with the
names of `quern bench --json`."""
import json
import resource
import statistics
import sys
import time

START = time.perf_counter()
import numpy as np  # noqa: E402


def fed(name, shape, kind, files):
    if name in files:
        return np.load(files[name])
    shape = [d if isinstance(d, int) else 1 for d in shape]
    if "float" in kind or "f32" in kind:
        return np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    return np.zeros(shape, np.int64)


def ort(path, threads, files):
    import onnxruntime
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = threads
    o.inter_op_num_threads = 1
    o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    o.log_severity_level = 3
    loaded = time.perf_counter()
    s = onnxruntime.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    x = {i.name: fed(i.name, i.shape, i.type, files) for i in s.get_inputs()}
    return loaded, lambda: s.run(None, x)


def openvino(path, threads, files):
    import openvino
    core = openvino.Core()
    loaded = time.perf_counter()
    m = core.read_model(path)
    c = core.compile_model(m, "CPU", {"INFERENCE_NUM_THREADS": threads,
                                      "PERFORMANCE_HINT": "LATENCY",
                                      "INFERENCE_PRECISION_HINT": "f32"})
    r = c.create_infer_request()
    x = {}
    for i in c.inputs:
        shape = [d.get_length() if d.is_static else 1 for d in i.partial_shape]
        x[i.any_name] = fed(i.any_name, shape, i.element_type.get_type_name(), files)
    return loaded, lambda: r.infer(x)


def main():
    which, path, threads, seconds = sys.argv[1:5]
    files = dict(a.split("=", 1) for a in sys.argv[5:])
    loaded, run = {"ort": ort, "openvino": openvino}[which](path, int(threads), files)
    run()
    first = time.perf_counter()
    times, end = [], first + float(seconds)
    run()
    while len(times) < 5 or time.perf_counter() < end:
        t = time.perf_counter()
        run()
        times.append(time.perf_counter() - t)
    print(json.dumps({
        "run_ns": statistics.median(times) * 1e9,
        # without the interpreter's start and its imports, which a native program does not have
        "first_answer_seconds": first - loaded,
        "with_start_seconds": first - START,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "runs": len(times)}))


if __name__ == "__main__":
    main()
