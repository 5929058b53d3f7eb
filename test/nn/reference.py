#!/usr/bin/env python3
"""Writes test/nn/reference.h: losses, logits, gradients and ten Adam steps of a small GPT and a small
ResNet, computed by PyTorch in float64. Run once, by hand, where PyTorch is installed:
    python3 test/nn/reference.py >test/nn/reference.h
Weights and inputs follow from formulas (below and in test_reference.c), so that only results are
stored: tensors as three sums each, which any wrong element changes."""
import math

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
STEPS, LR, EPS = 10, 0.003, 1e-6


class Params:
    """Parameters in the order in which the model first asks for them."""

    def __init__(self):
        self.all = {}

    def get(self, name, *shape):
        if name not in self.all:
            i, n = len(self.all), math.prod(shape)
            k = torch.arange(n)
            u = ((k * 7919 + i * 104729 + 17) % 1009).double() / 1009 - 0.5
            if len(shape) > 1:
                w = u * math.sqrt(12 / math.prod(shape[1:]))
            else:
                w = 0.4 * u + (1 if name.endswith("weight") else 0)
            self.all[name] = w.reshape(shape).requires_grad_()
        return self.all[name]


def sums(t, i):
    t = t.detach().flatten()
    k = torch.arange(t.numel()).double()
    return [(t * torch.cos(0.7 * k + i)).sum(), (t * torch.cos(1.3 * k + 2 * i + 1)).sum(),
            (t * t).sum()]


def gpt(p):
    vocab, window, layers, heads, width = 11, 6, 2, 2, 8
    tokens = ((torch.arange(12) * 5 + 3) % vocab).reshape(2, 6)
    labels = (torch.arange(12) * 7 + 2) % vocab

    def linear(name, x, out):
        w = p.get(name + ".weight", out, x.shape[-1])
        return F.linear(x, w, p.get(name + ".bias", out))

    def norm(name, x):
        return F.layer_norm(x, (width,), p.get(name + ".weight", width),
                            p.get(name + ".bias", width))

    def run():
        wte = p.get("wte.weight", vocab, width)
        x = wte[tokens] + p.get("wpe.weight", window, width)
        for i in range(layers):
            h = f"h.{i}."
            y = linear(h + "attn.c_attn", norm(h + "ln_1", x), 3 * width)
            q, k, v = [t.reshape(2, 6, heads, -1).transpose(1, 2) for t in y.split(width, 2)]
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + linear(h + "attn.c_proj", y.transpose(1, 2).reshape(2, 6, width), width)
            y = linear(h + "mlp.c_fc", norm(h + "ln_2", x), 4 * width)
            x = x + linear(h + "mlp.c_proj", F.gelu(y, approximate="tanh"), width)
        logits = (norm("ln_f", x) @ wte.T).reshape(12, vocab)
        return logits, F.cross_entropy(logits, labels)

    return run


def resnet(p):
    x0 = (((torch.arange(2048) * 6007 + 5) % 997).double() / 997 * 2 - 1).reshape(8, 1, 16, 16)
    labels = (torch.arange(8) * 7 + 2) % 4

    def conv_norm(conv, norm, x, out, kernel, stride):
        x = F.conv2d(x, p.get(conv + ".weight", out, x.shape[1], kernel, kernel), None, stride,
                     kernel // 2)
        return F.batch_norm(x, None, None, p.get(norm + ".weight", out), p.get(norm + ".bias", out),
                            True)

    def run():
        x = F.relu(conv_norm("conv1", "bn1", x0, 2, 3, 1))
        for s in range(4):
            for b in range(2):
                n, out, stride = f"layer{s + 1}.{b}.", 2 << s, 2 if s and not b else 1
                y = F.relu(conv_norm(n + "conv1", n + "bn1", x, out, 3, stride))
                y = conv_norm(n + "conv2", n + "bn2", y, out, 3, 1)
                if stride > 1:
                    x = conv_norm(n + "downsample.0", n + "downsample.1", x, out, 1, stride)
                x = F.relu(x + y)
        x = x.mean((2, 3))
        w = p.get("fc.weight", 4, x.shape[1])
        logits = F.linear(x, w, p.get("fc.bias", 4))
        return logits, F.cross_entropy(logits, labels)

    return run


def numbers(values):
    return ", ".join("%.12g" % v.item() for v in values)


def emit(name, model):
    p = Params()
    run = model(p)
    logits, loss = run()
    order = list(p.all)
    loss.backward()
    grads = [sums(p.all[n].grad, i) for i, n in enumerate(order)]
    opt = torch.optim.Adam(p.all.values(), LR, (0.9, 0.999), EPS)
    losses = []
    for _ in range(STEPS):
        opt.zero_grad()
        loss = run()[1]
        loss.backward()
        losses.append(loss)
        opt.step()
    print(f"static const double {name}_logits[] = {{ {numbers(logits.flatten()[:44])} }};")
    print(f"static const double {name}_losses[] = {{ {numbers(losses)} }};")
    print(f"static const Tensor {name}_params[] = {{")
    for i, n in enumerate(order):
        print(f'{{ "{n}", {{ {numbers(grads[i])} }}, {{ {numbers(sums(p.all[n], i))} }} }},')
    print("};\n")


print("""/* Written by test/nn/reference.py with PyTorch. */
#ifndef QN_TEST_NN_REFERENCE_H
#define QN_TEST_NN_REFERENCE_H

typedef struct Tensor {
    const char *name;
    double grad[3];  /* sums over the first gradient */
    double after[3]; /* over the parameter after ten steps */
} Tensor;
""")
emit("gpt", gpt)
emit("resnet", resnet)
print("#endif")
