#!/usr/bin/env python3
"""PyTorch's side of the GPU table: the nets of quern_bench_gpu, by the same names.

torch_gpu.py MODE PRECISION SECONDS ROW...: MODE is eager or compile, PRECISION bf16 or fp32.
Prints one JSON object a row."""
import json
import re
import sys
import time

import torch
import torch.nn.functional as F

sys.dont_write_bytecode = True  # nothing beside the sources
from torch_models import GPT2, Bert, resnet50  # noqa: E402

ROW = re.compile(r"(GPT-2 124M|ResNet-50|BERT-base) (training|inference)(?:, batch)? "
                 r"(\d+)x(\d+)(?: of (\d+) layers)?")


def build(model, batch, length, layers, device):
    """(net, x, y, flat)"""
    if model == "ResNet-50":
        net = resnet50().to(device, memory_format=torch.channels_last)
        x = torch.randn(batch, 3, length, length, device=device)
        return (net, x.contiguous(memory_format=torch.channels_last),
                torch.randint(0, 1000, (batch,), device=device), False)
    vocab = 1000 if layers else {"GPT-2 124M": 50257, "BERT-base": 30522}[model]
    net = (GPT2 if model == "GPT-2 124M" else Bert)(vocab=vocab, layers=layers or 12).to(device)
    x = torch.randint(0, vocab, (batch, length), device=device)
    return net, x, torch.randint(0, vocab, (batch * length,), device=device), True


def training(net, x, y, flat, mode, precision):
    def loss_of(x, y):
        with torch.autocast(x.device.type, torch.bfloat16, enabled=precision == "bf16"):
            out = net(x)
            return F.cross_entropy(out.flatten(0, 1) if flat else out, y)

    fused = x.device.type == "cuda"
    opt = (torch.optim.AdamW(net.parameters(), lr=1e-5, betas=(0.9, 0.95), weight_decay=0.1,
                             fused=fused) if flat else
           torch.optim.SGD(net.parameters(), lr=1e-5, momentum=0.9, weight_decay=1e-4,
                           fused=fused))
    loss_of = torch.compile(loss_of) if mode == "compile" else loss_of

    def step():
        opt.zero_grad(set_to_none=True)
        loss_of(x, y).backward()
        opt.step()
    return step


def inference(net, x, mode, precision):
    net.eval()
    run = torch.compile(net, mode="max-autotune") if mode == "compile" else net

    def call():
        with torch.inference_mode(), torch.autocast(x.device.type, torch.bfloat16,
                                                    enabled=precision == "bf16"):
            run(x)
    return call


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def measure(row, mode, device, precision, seconds):
    model, what, batch, length, layers = ROW.fullmatch(row).groups()
    begin = time.perf_counter()
    net, x, y, flat = build(model, int(batch), int(length), int(layers or 0), device)
    call = (training(net, x, y, flat, mode, precision) if what == "training" else
            inference(net, x, mode, precision))
    call()
    wait(device)
    first = time.perf_counter() - begin
    for _ in range(3):
        call()
    wait(device)
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        t = time.perf_counter()
        call()
        wait(device)
        times.append(time.perf_counter() - t)
    work = int(batch) * (int(length) if flat else 1)
    return {"rate": work / min(times), "first_s": first}


def main():
    mode, precision, seconds, *rows = sys.argv[1:]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    for row in rows:
        try:
            out = measure(row, mode, device, precision, float(seconds))
        except Exception as e:  # the other rows go on
            out = {"failed": f"{type(e).__name__}: {e}"[:200]}
        print(json.dumps({"name": row, "mode": mode, "torch": torch.__version__, **out}),
              flush=True)
        torch.compiler.reset()
        if device == "cuda":
            torch.cuda.empty_cache()


main()
