#!/usr/bin/env python3
"""The demo's net (recipes/fashion-mnist-demo.yaml) trained by PyTorch on random pictures: the
median time of a step, in microseconds, as the last line. --threads N, --steps N, --channels-last."""
import argparse
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

a = argparse.ArgumentParser()
a.add_argument("--threads", type=int, default=2)
a.add_argument("--steps", type=int, default=60)
a.add_argument("--batch", type=int, default=128)
a.add_argument("--channels-last", action="store_true")
a = a.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(0)

net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01, foreach=True)
x = torch.randn(a.batch, 1, 28, 28)
y = torch.randint(0, 10, (a.batch,))
if a.channels_last:
    net = net.to(memory_format=torch.channels_last)
    x = x.to(memory_format=torch.channels_last)
times = []
for i in range(a.steps + 5):
    t = time.perf_counter()
    opt.zero_grad(set_to_none=True)
    F.cross_entropy(net(x), y).backward()
    opt.step()
    if i >= 5:
        times.append(time.perf_counter() - t)
print(f"torch {torch.__version__}, {a.threads} threads, batch {a.batch}")
print(f"{statistics.median(times) * 1e6:.0f}")
