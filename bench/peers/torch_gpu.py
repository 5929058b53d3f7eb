#!/usr/bin/env python3
"""PyTorch's side of the GPU table: the nets of quern_bench_gpu, by the same names.

torch_gpu.py MODE ROW...: MODE is eager or compile. Prints one JSON object a row, or one that says
why there is none."""
import argparse
import gc
import json
import re
import sys
import time

sys.dont_write_bytecode = True  # nothing beside the sources

ROW = re.compile(r"(GPT-2|GPT-2 124M|ResNet-50|BERT|BERT-base) (training|inference)(?:, batch)? "
                 r"(\d+)x(\d+)(?:, (\d+) layers?, (\d+) words)?")


def parse():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("mode", choices=["eager", "compile"])
    a.add_argument("rows", nargs="+", metavar="ROW")
    a.add_argument("--device", default="cuda", help="cuda, cuda:N or cpu (cuda)")
    a.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    a.add_argument("--seconds", type=float, default=1.5, help="that a row is timed for (1.5)")
    a.add_argument("--warm-up", type=int, default=3, metavar="N", help="runs before that (3)")
    a.add_argument("--threads", type=int, metavar="N", help="of a CPU")
    return a.parse_args()


def load(device):
    """Why there is no PyTorch for the device; None: there is."""
    try:
        import torch
        import torch._inductor.config
        import torch.nn.functional
    except ImportError as e:
        return f"{sys.executable} has no PyTorch: {e}"
    globals().update(torch=torch, F=torch.nn.functional)
    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            return f"PyTorch {torch.__version__} of {sys.executable} finds no CUDA device"
        n = torch.cuda.device_count()
        if int(device[5:] or 0) >= n:
            return f"PyTorch finds {n} CUDA device{'s' * (n > 1)}, none of them {device}"
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
    return None


# ---- nets ----

def build(model, batch, length, layers, words, device):
    """(net, x, y, whether y is of every token)"""
    from torch_models import GPT2, Bert, resnet50
    if model == "ResNet-50":
        net = resnet50().to(device, memory_format=torch.channels_last)
        x = torch.randn(batch, 3, length, length, device=device)
        return (net, x.contiguous(memory_format=torch.channels_last),
                torch.randint(0, 1000, (batch,), device=device), False)
    is_gpt = model.startswith("GPT-2")
    vocab = words or (50257 if is_gpt else 30522)
    net = (GPT2 if is_gpt else Bert)(vocab=vocab, layers=layers or 12).to(device)
    x = torch.randint(0, vocab, (batch, length), device=device)
    return net, x, torch.randint(0, vocab, (batch * length,), device=device), True


def mixed(o, x):
    return torch.autocast(x.device.type, torch.bfloat16, enabled=o.precision == "bf16")


def training(o, net, x, y, flat):
    def loss_of(x, y):
        with mixed(o, x):
            out = net(x)
            return F.cross_entropy(out.flatten(0, 1) if flat else out, y)

    opt = (torch.optim.AdamW(net.parameters(), lr=1e-5, betas=(0.9, 0.95), weight_decay=0.1,
                             fused=True) if flat else
           torch.optim.SGD(net.parameters(), lr=1e-5, momentum=0.9, weight_decay=1e-4, fused=True))
    if o.mode == "compile":
        torch._inductor.config.freezing = False
        loss_of = torch.compile(loss_of)

    def step():
        opt.zero_grad(set_to_none=True)
        loss_of(x, y).backward()
        opt.step()
    return step


def inference(o, net, x):
    net.eval()
    if o.mode == "compile":
        torch._inductor.config.freezing = True  # weights in their types and layouts once
    tuned = "max-autotune" if x.device.type == "cuda" else "default"
    run = torch.compile(net, mode=tuned) if o.mode == "compile" else net

    def call():
        with torch.inference_mode(), mixed(o, x):
            run(x)
    return call


def flops_of(net, x, causal, trains):
    """As bench/gpu/nets.c counts them: products of the forward, thrice for a training step. A
    causal attention has those of the pairs that see each other, where PyTorch counts all."""
    from torch.utils.flop_counter import FlopCounterMode
    counter, was = FlopCounterMode(display=False), net.training
    net.eval()  # or the norms' statistics would move
    with torch.no_grad(), counter:
        net(x)
    net.train(was)
    ops = counter.get_flop_counts()["Global"]
    seen = (x.shape[1] + 1) / (2 * x.shape[1]) if causal else 1
    flops = sum(n * (seen if "attention" in str(op) else 1) for op, n in ops.items())
    return (3 if trains else 1) * flops


# ---- measuring ----

def wait(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def measure(o, row):
    m = ROW.fullmatch(row)
    if not m:
        raise ValueError("no net of that name")
    model, what, *sizes = m.groups()
    batch, length, layers, words = (int(s or 0) for s in sizes)
    begin = time.perf_counter()
    net, x, y, flat = build(model, batch, length, layers, words, o.device)
    trains = what == "training"
    call = training(o, net, x, y, flat) if trains else inference(o, net, x)
    call()
    wait(o.device)
    first = time.perf_counter() - begin
    for _ in range(o.warm_up):
        call()
    wait(o.device)
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < o.seconds:
        t = time.perf_counter()
        call()
        wait(o.device)
        times.append(time.perf_counter() - t)
    out = {"rate": batch * (length if flat else 1) / min(times), "ns": min(times) * 1e9,
           "runs": len(times), "first_s": first, "params": sum(p.numel() for p in net.parameters())}
    if o.mode == "eager":
        out["flops"] = flops_of(net, x, model.startswith("GPT-2"), trains)
    return out


def main():
    o = parse()
    why = load(o.device)
    if why:
        print(json.dumps({"unavailable": why}), flush=True)
        return
    if o.threads:
        torch.set_num_threads(o.threads)
    for row in o.rows:
        try:
            out = measure(o, row)
        except Exception as e:  # the other rows go on
            out = {"failed": " ".join(f"{type(e).__name__}: {e}".split())[:200]}
        print(json.dumps({"name": row, "mode": o.mode, "torch": torch.__version__, **out}),
              flush=True)
        torch.compiler.reset()
        gc.collect()  # a net's cycles hold its memory
        if o.device.startswith("cuda"):
            torch.cuda.empty_cache()


main()
