#!/usr/bin/env python3
"""Everything on one device in one call: quern_bench_gpu, and the same nets by PyTorch beside it.

Writes build/bench-gpu.json. What fails or comes too late says so, and the rest goes on."""
import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOAL = 1.1  # times torch.compile
FLOPS_DIFFER = 0.03  # share, from which the two sides do not run the same net


def parse():
    a = argparse.ArgumentParser(prog="./do bench --gpu", description=__doc__.splitlines()[0],
                                epilog="QUERN_BENCH_PYTHON names a Python that has PyTorch.")
    a.add_argument("device", nargs="?", default="cuda:0", help="as in --device (cuda:0)")
    a.add_argument("--quick", action="store_true", help="small sizes")
    a.add_argument("--no-peer", action="store_true", help="Quern alone")
    a.add_argument("--only", metavar="WORD", help="nets and operators whose name has the word")
    a.add_argument("--peer-device", metavar="D", help="PyTorch's: cpu, cuda:N "
                   "(that of a CUDA device, else cpu)")
    a.add_argument("--peer-minutes", type=float, metavar="M",
                   help="for PyTorch's rows, beside --minutes (its half is PyTorch's)")
    a.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    a.add_argument("--peak", type=float, metavar="T", help="TFLOP/s of the data sheet, for MFU")
    a.add_argument("--minutes", type=float, default=9, help="for all of it (9)")
    a.add_argument("--build", default="build", help=argparse.SUPPRESS)
    o = a.parse_args()
    o.build = ROOT / o.build
    o.peer = None if o.no_peer else os.environ.get("QUERN_BENCH_PYTHON")
    o.peer_device = o.peer_device or (o.device if o.device.startswith("cuda") else "cpu")
    return o


def run_quern(o, seconds):
    """The rows; the programs of first steps are compiled anew."""
    out = o.build / "bench-gpu.json"
    command = [str(o.build / "bench/quern_bench_gpu"), o.device, "--json", str(out),
               "--limit", str(seconds), "--precision", o.precision]
    command += ["--quick"] if o.quick else []
    command += ["--only", o.only] if o.only else []
    command += ["--peak", str(o.peak)] if o.peak else []
    with tempfile.TemporaryDirectory(prefix="quern-bench-") as cache:
        env = {**os.environ, "XDG_CACHE_HOME": cache, "POCL_CACHE_DIR": cache}
        rc = subprocess.run(command, env=env).returncode
    if rc > 1 or rc < 0 or not out.exists():
        sys.exit(f"bench/gpu.py: quern_bench_gpu ends with {rc}")
    return rc, json.loads(out.read_text())


def run_peer(o, mode, names, end):
    """(results by name, why there are none); what is not there by `end` (a time) is left out."""
    command = [o.peer, str(ROOT / "bench/peers/torch_gpu.py"), mode, "--device", o.peer_device,
               "--precision", o.precision]
    command += ["--seconds", "0.2", "--warm-up", "1"] if o.quick else []
    command += names
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        p = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE)
    except OSError as e:
        return {}, f"QUERN_BENCH_PYTHON: {e}"
    found, text, why = {}, "", None
    while time.monotonic() < end:
        ready, _, _ = select.select([p.stdout], [], [], max(0, end - time.monotonic()))
        chunk = os.read(p.stdout.fileno(), 65536).decode() if ready else ""
        if not chunk:
            break
        text += chunk
        *lines, text = text.split("\n")
        for row in (json.loads(line) for line in lines if line.startswith("{")):
            why = row.get("unavailable", why)
            if "name" in row:
                found[row["name"]] = row
    p.kill()
    p.wait()
    return found, why


# ---- the table ----

def cell(row, peak):
    """Its rate and MFU, both sides by Quern's count of FLOPs."""
    if not row:
        return "no time"
    if row.get("failed"):
        return "failed"
    if not row["rate"]:
        return "-"
    mfu = f" {row['flops'] / (row['ns'] * 1e-9) / peak:>4.0%}" if peak else ""
    rate = row["rate"]
    return (f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}") + mfu


def notes(quern, peers):
    """What failed, and where the two sides do not run the same net."""
    for x in peers:
        if x.get("failed"):
            yield f"{x['mode']}: {x['failed']}"
        elif x.get("params") not in (None, quern["params"]):
            yield f"{x['mode']}: has {x['params']:,} parameters, Quern {quern['params']:,}"
        elif abs(x.get("own_flops", quern["flops"]) / quern["flops"] - 1) > FLOPS_DIFFER:
            yield f"{x['mode']}: counts {x['own_flops']:.4g} FLOPs, Quern {quern['flops']:.4g}"


def print_peers(o, result, eager, compiled):
    peak = result["peak"] if result["computes"] else 0
    torch = next((x["torch"] for x in (*eager.values(), *compiled.values()) if "torch" in x), "")
    title = f"beside PyTorch {torch} on {o.peer_device}"
    print(f"\n{title:<50} {'Quern, MFU':>16} {'eager, MFU':>16} {'compile, MFU':>16} "
          f"{'ratio':>6} {'first s':>8} {'compile':>8}")
    for r in result["rows"]:
        if r["part"] != "nets" or r["failed"]:
            continue
        peers = [x[r["name"]] for x in (eager, compiled) if r["name"] in x]
        for x in peers:
            if "flops" in x:
                x["own_flops"] = x["flops"]
            x["flops"] = r["flops"]
        rates = [x["rate"] for x in peers if "rate" in x]
        r["ratio"] = r["rate"] / max(rates) if rates and result["computes"] else None
        ratio = f"{r['ratio']:.2f}" if r["ratio"] else "-"
        c = compiled.get(r["name"])
        first = f"{c['first_s']:.1f}" if c and "first_s" in c else "-"
        mine = cell(r, peak) if result["computes"] else "-"
        print(f"{r['name']:<50} {mine:>16} {cell(eager.get(r['name']), peak):>16} "
              f"{cell(c, peak):>16} {ratio:>6} {r['first_s']:>8.1f} {first:>8}  goal: {GOAL}")
        for line in notes(r, peers):
            print(f"    {line}")


def beside_peers(o, result, begin):
    names = [r["name"] for r in result["rows"] if r["part"] == "nets" and not r["failed"]]
    if not names:
        return
    start, end = time.monotonic(), begin + o.minutes * 60
    end = start + o.peer_minutes * 60 if o.peer_minutes else end
    eager, why = run_peer(o, "eager", names, start + (end - start) * 0.3)
    compiled = {}
    if not why:
        compiled, why = run_peer(o, "compile", names, end)
    if why:
        print(f"\nPyTorch: not measured; {why}")
        return
    print_peers(o, result, eager, compiled)
    result |= {"eager": eager, "compile": compiled, "peer_device": o.peer_device}
    (o.build / "bench-gpu.json").write_text(json.dumps(result, indent=1) + "\n")


def main():
    o = parse()
    begin, all_s = time.monotonic(), o.minutes * 60
    rc, result = run_quern(o, all_s * (0.5 if o.peer and not o.peer_minutes else 1))
    if o.peer:
        beside_peers(o, result, begin)
    elif not o.no_peer:
        print("\nPyTorch: not measured; QUERN_BENCH_PYTHON may name a Python that has it")
    sys.exit(rc)


main()
