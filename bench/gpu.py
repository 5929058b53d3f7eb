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


def parse():
    a = argparse.ArgumentParser(prog="./do bench --gpu", description=__doc__.splitlines()[0],
                                epilog="QUERN_BENCH_PYTHON names a Python that has PyTorch.")
    a.add_argument("device", nargs="?", default="cuda:0", help="as in --device (cuda:0)")
    a.add_argument("--quick", action="store_true", help="small sizes")
    a.add_argument("--no-peer", action="store_true", help="Quern alone")
    a.add_argument("--only", metavar="WORD", help="nets and operators whose name has the word")
    a.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    a.add_argument("--peak", type=float, metavar="T", help="TFLOP/s of the data sheet, for MFU")
    a.add_argument("--minutes", type=float, default=9, help="for all of it (9)")
    a.add_argument("--build", default="build", help=argparse.SUPPRESS)
    o = a.parse_args()
    o.build = ROOT / o.build
    o.peer = None if o.no_peer else os.environ.get("QUERN_BENCH_PYTHON")
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
    """Results by name; what is not there by `end` (a time) is left out."""
    command = [o.peer, str(ROOT / "bench/peers/torch_gpu.py"), mode, o.precision,
               "0.2" if o.quick else "1.5", *names]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    p = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE)
    found, text = {}, ""
    while time.monotonic() < end:
        ready, _, _ = select.select([p.stdout], [], [], max(0, end - time.monotonic()))
        chunk = os.read(p.stdout.fileno(), 65536).decode() if ready else ""
        if not chunk:
            break
        text += chunk
        *lines, text = text.split("\n")
        for line in lines:
            if line.startswith("{"):
                row = json.loads(line)
                found[row["name"]] = row
    p.kill()
    p.wait()
    return found


def cell(row):
    if not row:
        return "no time"
    return "failed" if "failed" in row else f"{row['rate']:,.0f}"


def print_peers(rows, eager, compiled):
    print(f"\n{'beside PyTorch':<38} {'Quern':>12} {'eager':>12} {'compile':>12} "
          f"{'ratio':>7} {'first s':>9} {'compile':>8}")
    for r in rows:
        e, c = eager.get(r["name"]), compiled.get(r["name"])
        rates = [x["rate"] for x in (e, c) if x and "rate" in x]
        ratio = f"{r['rate'] / max(rates):.2f}" if rates else "-"
        first = f"{c['first_s']:.1f}" if c and "first_s" in c else "-"
        print(f"{r['name']:<38} {r['rate']:>12,.0f} {cell(e):>12} {cell(c):>12} {ratio:>7} "
              f"{r['first_s']:>9.1f} {first:>8}  goal: {GOAL}")
        for x in (e, c):
            if x and "failed" in x:
                print(f"    {x['mode']}: {x['failed']}")


def main():
    o = parse()
    begin, all_s = time.monotonic(), o.minutes * 60
    rc, result = run_quern(o, all_s * (0.5 if o.peer else 1))
    rows = [r for r in result["rows"] if r["part"] == "nets" and not r["failed"]]
    if o.peer and rows:
        names = [r["name"] for r in rows]
        left = begin + all_s - time.monotonic()
        eager = run_peer(o, "eager", names, time.monotonic() + left * 0.3)
        compiled = run_peer(o, "compile", names, begin + all_s)
        print_peers(rows, eager, compiled)
        result["eager"], result["compile"] = eager, compiled
        (o.build / "bench-gpu.json").write_text(json.dumps(result, indent=1) + "\n")
    elif not o.no_peer:
        print("\nPyTorch: not measured; QUERN_BENCH_PYTHON may name a Python that has it")
    sys.exit(rc)


main()
