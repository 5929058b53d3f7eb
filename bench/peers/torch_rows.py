#!/usr/bin/env python3
"""PyTorch's side of the speed table: the rows of quern_bench_rows, by the same names and units.

torch_rows.py NAME [--threads N] [--mode eager|channels_last|compile] [--seconds S]
torch_rows.py --serve ...: measures the row that each line of standard input names.

Prints one JSON object a measurement. bench/run.py drives it."""
import argparse
import gzip
import json
import math
import os
import re
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch._inductor.config as inductor

sys.dont_write_bytecode = True  # nothing beside the sources
from torch_models import GPT2, Block, fmnist_net, resnet50  # noqa: E402

FMNIST = "/usr/share/datasets/fashion-mnist/"


def parse():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("name", nargs="?")
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--mode", choices=["eager", "channels_last", "compile"], default="eager")
    a.add_argument("--seconds", type=float, default=1.0)
    a.add_argument("--cpu-time", action="store_true", help="of this process, on a busy machine")
    a.add_argument("--serve", action="store_true")
    return a.parse_args()


# ---- rows: each function returns one call to time ----

def images(args, net, *tensors):
    """Everything in the order of memory that the mode asks for."""
    if args.mode != "channels_last":
        return (net, *tensors)
    if net is not None:
        net = net.to(memory_format=torch.channels_last)
    return (net, *(t.contiguous(memory_format=torch.channels_last) for t in tensors))


def compiled(args, f):
    return torch.compile(f) if args.mode == "compile" else f


def training(args, net, opt, x, y, flat=False):
    """forward, loss, backward, update"""
    def loss_of(x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            out = net(x)
            return F.cross_entropy(out.flatten(0, 1) if flat else out, y)
    loss_of = compiled(args, loss_of)

    def step():
        opt.zero_grad(set_to_none=True)
        loss_of(x, y).backward()
        opt.step()
    return step


def gemm(args, name, dtype):
    m, n, k = (name.split("x") * 3)[:3] if "x" not in name else name.split("x")
    x = torch.randn(int(m), int(k)).to(dtype)
    w = torch.randn(int(n), int(k)).to(dtype)
    f = compiled(args, F.linear)
    return (lambda: f(x, w)), 2.0 * int(m) * int(n) * int(k)


def conv(args, kind, dims):
    c, h, m, k, s = map(int, dims)
    p, o = k // 2, (h + 2 * (k // 2) - k) // s + 1
    x, dy, w = torch.randn(16, c, h, h), torch.randn(16, m, o, o), torch.randn(m, c, k, k)
    _, x, dy, w = images(args, None, x, dy, w)
    flops = 2.0 * 16 * m * o * o * c * k * k
    if kind == "fwd":
        f = compiled(args, lambda: F.conv2d(x, w, None, s, p))
    else:
        mask = [kind == "dx", kind == "dw", False]
        f = compiled(args, lambda: torch.ops.aten.convolution_backward(
            dy, x, w, None, [s, s], [p, p], [1, 1], False, [0, 0], 1, mask))
    return f, flops


def stream(args, f):
    x = torch.randn(16384, 1024)
    f = compiled(args, f)
    return (lambda: f(x)), 2.0 * 4 * x.numel()


def resnet_training(args):
    net, x = images(args, resnet50(), torch.randn(16, 3, 224, 224))
    opt = torch.optim.SGD(net.parameters(), lr=1e-5, momentum=0.9, weight_decay=1e-4, fused=True)
    return training(args, net, opt, x, torch.randint(0, 1000, (16,)))


def resnet_inference(args, batch):
    net, x = images(args, resnet50().eval(), torch.randn(batch, 3, 224, 224))
    return compiled(args, net), x


def adamw(net, lr):
    return torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=0.01, fused=True)


def idx(name, skip):
    with gzip.open(FMNIST + name) as f:
        return torch.frombuffer(bytearray(f.read()[skip:]), dtype=torch.uint8)


def fmnist_data():
    x = idx("train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28).float().div_(255)
    return x.sub_(0.286).div_(0.353), idx("train-labels-idx1-ubyte.gz", 8).long()


def fmnist(args, epoch):
    """The demo's net: one step on one batch, or an epoch in random order, its data in memory."""
    net, = images(args, fmnist_net())
    opt = adamw(net, 5e-5)
    data, labels = fmnist_data()
    _, x = images(args, None, data[:128].clone())
    if not epoch:
        return training(args, net, opt, x, labels[:128].clone())
    y = labels[:128].clone()
    step = training(args, net, opt, x, y)

    def run():
        order = torch.randperm(len(data))
        for i in range(len(data) // 128):
            at = order[128 * i:128 * i + 128]
            x.copy_(data[at])
            y.copy_(labels[at])
            step()
    return run


def mlp(args):
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
    opt = torch.optim.SGD(net.parameters(), lr=1e-5, fused=True)
    return training(args, net, opt, torch.randn(64, 784), torch.randint(0, 10, (64,)))


def block(args):
    net = Block(512, 8)
    f = compiled(args, net)
    x, dy = torch.randn(8, 256, 512, requires_grad=True), torch.randn(8, 256, 512)
    wrt = [x, *net.parameters()]
    return lambda: torch.autograd.grad(f(x), wrt, dy)


def gpt2(args):
    net = GPT2()
    x, y = torch.randint(0, 50257, (4, 64)), torch.randint(0, 50257, (256,))
    return training(args, net, adamw(net, 1e-5), x, y, flat=True)


def adamw_update(args):
    params = [nn.Parameter(torch.randn(2048, 2048)) for _ in range(24)]
    for p in params:
        p.grad = torch.full_like(p, 1e-3)
    opt = torch.optim.AdamW(params, lr=1e-5, weight_decay=0.01, fused=args.mode != "compile")
    return compiled(args, opt.step)


def build(args, name):
    """(call, unit, work a call; 0 for times)"""
    args.bf16 = name.endswith("-bf16")
    name = name.removesuffix("-bf16")
    if m := re.fullmatch(r"(s|bf16)gemm-(.*)", name):
        f, work = gemm(args, m[2], torch.float32 if m[1] == "s" else torch.bfloat16)
        return f, "GFLOP/s", work
    if m := re.fullmatch(r"conv(?:-(dx|dw))?-(\d+)x(\d+)-(\d+)-k(\d+)s(\d+)", name):
        f, work = conv(args, m[1] or "fwd", m.groups()[1:])
        return f, "GFLOP/s", work
    if m := re.fullmatch(r"resnet50-infer-(\d+)", name):
        f, x = resnet_inference(args, int(m[1]))
        return (lambda: f(x)), "img/s", float(m[1])
    if name == "softmax-16384x1024":
        f, work = stream(args, lambda x: F.softmax(x, -1))
        return f, "GB/s", work
    if name == "layernorm-16384x1024":
        norm = nn.LayerNorm(1024)
        f, work = stream(args, lambda x: norm(x))
        return f, "GB/s", work
    if name == "gelu-16384x1024":
        f, work = stream(args, F.gelu)
        return f, "GB/s", work
    times = {
        "fmnist-epoch": (lambda a: fmnist(a, True), "s"),
        "fmnist-step-128": (lambda a: fmnist(a, False), "us"),
        "mlp-step-64": (mlp, "us"), "block-8x256x512": (block, "ms"),
        "gpt2-step-4x64": (gpt2, "ms"), "adamw-100m": (adamw_update, "ms"),
        "first-step-fmnist": (lambda a: fmnist(a, False), "s"),
        "first-step-resnet50": (resnet_training, "s"),
        "memory-resnet50-train-16": (resnet_training, "MB"),
    }
    if name == "resnet50-train-16":
        return resnet_training(args), "img/s", 16.0
    if name not in times:
        sys.exit(f"torch_rows.py: no row {name}")
    return times[name][0](args), times[name][1], 0


# ---- measuring ----

def needs_no_grad(name):
    return not re.match("resnet50-train|fmnist|mlp|block|gpt2|first-step|memory", name)


def clock(args):
    return time.process_time_ns if args.cpu_time else time.perf_counter_ns


def runs_of(args, name, f):
    """Nanoseconds of each run, after two to warm up (and to compile)."""
    now = clock(args)
    if name != "fmnist-epoch" or args.mode == "compile":
        f(), f()
    times, begin = [], time.perf_counter()
    while True:
        t = now()
        f()
        times.append(now() - t)
        done = name == "fmnist-epoch" or len(times) >= 20000
        if done or (len(times) >= 3 and time.perf_counter() - begin >= args.seconds):
            return times


def peak_mb():
    with open("/proc/self/status") as f:
        return int(re.search(r"VmHWM:\s*(\d+)", f.read())[1]) * 1024e-6


def value_of(args, name, call, unit, work):
    if name.startswith("first-step"):
        call()
        return (time.monotonic_ns() - int(os.environ["QUERN_BENCH_START_NS"])) * 1e-9, 1
    if unit == "MB":
        call(), call(), call()
        return peak_mb(), 3
    times = runs_of(args, name, call)
    ns = statistics.median(times)
    scale = {"GFLOP/s": work / ns, "GB/s": work / ns, "img/s": work / ns * 1e9, "s": ns * 1e-9,
             "ms": ns * 1e-6, "us": ns * 1e-3}
    return scale[unit], len(times)


def measure(args, name, made):
    with torch.inference_mode(needs_no_grad(name) and name != "adamw-100m"):
        if name not in made:
            made.clear()
            torch.compiler.reset()
            torch.manual_seed(0)
            if args.mode == "compile":
                inductor.freezing = "infer" in name
            made[name] = build(args, name)
        call, unit, work = made[name]
        value, runs = value_of(args, name, call, unit, work)
    print(json.dumps({"name": name, "unit": unit, "threads": args.threads, "mode": args.mode,
                      "runs": runs, "value": value, "torch": torch.__version__}), flush=True)
    assert math.isfinite(value)


def main():
    args, made = parse(), {}
    torch.set_num_threads(args.threads)
    if args.name:
        measure(args, args.name, made)
    if args.serve:
        for line in sys.stdin:
            measure(args, line.strip(), made)


main()
