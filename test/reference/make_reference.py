#!/usr/bin/env python3
"""Makes gpt.safetensors and resnet.safetensors: what PyTorch computes, in float64, for a small GPT-2
and a narrow ResNet-18 whose weights and inputs are given by a formula (fill below, and fill() in
test/nn/test_reference.c). Stored as float32: logits, loss, the gradient of every parameter, and
every parameter after ten steps of Adam on the same batch.

Needs torch and safetensors; run in this folder. Not part of the build."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

torch.set_default_dtype(torch.float64)
LR, EPS = 1e-3, 1e-4  # a large eps keeps rounding noise of near-zero gradients from being amplified


def fnv(name):
    h = 0xCBF29CE484222325
    for c in name.encode():
        h = ((h ^ c) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h & 0xFFFFFFFF


def uniform(name, n):
    """n numbers in [-1, 1), by a hash of the index."""
    i = torch.arange(n, dtype=torch.int64)
    x = (i * 2654435761 + fnv(name)) & 0xFFFFFFFF
    x = ((x ^ (x >> 15)) * 2246822519) & 0xFFFFFFFF
    x = (x ^ (x >> 13)) & 0xFFFFFFFF
    return (x >> 8).double() * 2.0**-23 - 1.0


def fill(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            u = uniform(name, p.numel()).reshape(p.shape)
            if p.dim() >= 2:
                u = u / math.sqrt(p[0].numel())
            elif name.endswith("weight"):
                u = 1 + 0.1 * u
            else:
                u = 0.1 * u
            p.copy_(u)


class Attention(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.h, s.c_attn, s.c_proj = h, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(s, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, s.h, d // s.h).transpose(1, 2) for z in s.c_attn(x).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return s.c_proj(y.transpose(1, 2).reshape(b, t, d))


class Mlp(nn.Module):
    def __init__(s, d):
        super().__init__()
        s.c_fc, s.c_proj = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(s, x):
        return s.c_proj(F.gelu(s.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.ln_1, s.attn, s.ln_2, s.mlp = nn.LayerNorm(d), Attention(d, h), nn.LayerNorm(d), Mlp(d)

    def forward(s, x):
        x = x + s.attn(s.ln_1(x))
        return x + s.mlp(s.ln_2(x))


class Gpt(nn.Module):
    def __init__(s, vocab, window, layers, heads, d):
        super().__init__()
        s.wte, s.wpe = nn.Embedding(vocab, d), nn.Embedding(window, d)
        s.h, s.ln_f = nn.ModuleList(Block(d, heads) for _ in range(layers)), nn.LayerNorm(d)
        s.lm_head = nn.Linear(d, vocab, bias=False)

    def forward(s, x):
        z = s.wte(x) + s.wpe(torch.arange(x.shape[1]))
        for b in s.h:
            z = b(z)
        return s.lm_head(s.ln_f(z))


class Basic(nn.Module):
    def __init__(s, i, o, stride):
        super().__init__()
        s.conv1, s.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        s.conv2, s.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        s.downsample = None
        if stride != 1 or i != o:
            s.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(s, x):
        y = s.bn2(s.conv2(F.relu(s.bn1(s.conv1(x)))))
        return F.relu(y + (s.downsample(x) if s.downsample else x))


class Resnet18(nn.Module):
    def __init__(s, channels, w, classes):
        super().__init__()
        s.conv1, s.bn1 = nn.Conv2d(channels, w, 3, 1, 1, bias=False), nn.BatchNorm2d(w)
        i = w
        for k in range(4):
            o = w << k
            s.add_module(f"layer{k + 1}", nn.Sequential(Basic(i, o, 2 if k else 1), Basic(o, o, 1)))
            i = o
        s.fc = nn.Linear(i, classes)

    def forward(s, x):
        x = F.relu(s.bn1(s.conv1(x)))
        for k in range(4):
            x = getattr(s, f"layer{k + 1}")(x)
        return s.fc(x.mean((2, 3)))


def record(path, model, loss_of, logits_of):
    fill(model)
    out = {}
    opt = torch.optim.Adam(model.parameters(), lr=LR, eps=EPS)
    for step in range(10):
        opt.zero_grad()
        logits = logits_of()
        loss = loss_of(logits)
        loss.backward()
        if step == 0:
            out["logits"], out["loss"] = logits.detach().clone(), loss.detach().reshape(1).clone()
            for name, p in model.named_parameters():
                out["grad." + name] = p.grad.clone()
        opt.step()
    for name, p in model.named_parameters():
        out["adam10." + name] = p.detach().clone()
    for name, b in model.named_buffers():
        if b.dtype.is_floating_point:
            out["adam10." + name] = b.clone()
    save_file({k: v.float().contiguous() for k, v in out.items()}, path)
    print(path, float(out["loss"]))


gpt = Gpt(vocab=13, window=8, layers=2, heads=2, d=16)
x = ((uniform("x", 24) + 1) * 6.5).long().reshape(3, 8)
y = ((uniform("y", 24) + 1) * 6.5).long().reshape(3, 8)
record("gpt.safetensors", gpt, lambda z: F.cross_entropy(z.view(-1, 13), y.view(-1)), lambda: gpt(x))

net = Resnet18(channels=3, w=2, classes=5)
net.train()
image = uniform("image", 4 * 3 * 16 * 16).reshape(4, 3, 16, 16)
label = torch.tensor([0, 4, 2, 1])
record("resnet.safetensors", net, lambda z: F.cross_entropy(z, label), lambda: net(image))
