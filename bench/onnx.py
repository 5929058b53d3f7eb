#!/usr/bin/env python3
"""ONNX models: Quern beside ONNX Runtime and OpenVINO, the programs taking turns.

./do bench --onnx DIR: every *.onnx below DIR (light_* topologies get random weights), at batch 1 and
8, and an encoder of BERT-base's shape at 128 tokens. A ratio above 1 means that Quern is faster (or
smaller); "limit" is the share of Quern's time that the machine's measured limits, arithmetic and
memory, would allow. Writes build/bench-onnx.json."""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent
PEERS = ("ort", "openvino")


def parse():
    a = argparse.ArgumentParser(prog="./do bench --onnx", description=__doc__.splitlines()[0])
    a.add_argument("models", help="folder of .onnx files")
    a.add_argument("--only", action="append", metavar="WORD", help="rows whose name has the word")
    a.add_argument("--rounds", type=int, default=3, help="turns of each program (3)")
    a.add_argument("--seconds", type=float, default=1.0, help="that a turn measures (1.0)")
    a.add_argument("--threads", default=None, help="default: one, and one a core")
    a.add_argument("--no-openvino", action="store_true")
    a.add_argument("--build", default="build")
    o = a.parse_args()
    cores = len(os.sched_getaffinity(0))
    o.threads = [int(t) for t in o.threads.split(",")] if o.threads else sorted({1, cores})
    o.build = ROOT / o.build
    return o


def make_models(o):
    """(name, file, extra inputs) of every row."""
    folder = o.build / "bench" / "onnx"
    folder.mkdir(parents=True, exist_ok=True)
    prepare = [sys.executable, str(ROOT / "bench/peers/onnx_models.py")]
    rows = []
    for path in sorted(Path(o.models).glob("*.onnx")):
        name, files = path.stem.removeprefix("light_"), []
        one = path
        if path.stem.startswith("light_"):
            one = folder / f"{name}.onnx"
            if not one.exists():
                subprocess.run([str(o.build / "quern"), "export", str(path), "--random-weights",
                                "1", "-o", str(one)], check=True, stdout=subprocess.DEVNULL)
        if name.startswith("silero"):
            import numpy as np
            arrays = {"input": np.zeros((1, 576), np.float32) + 0.01,
                      "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(16000)}
            for key, v in arrays.items():
                np.save(folder / f"silero_{key}.npy", v)
                files.append(f"{key}={folder}/silero_{key}.npy")
        rows.append((f"{name} 1", one, files))
        if path.stem.startswith("light_"):
            eight = folder / f"{name}-8.onnx"
            if not eight.exists():
                subprocess.run(prepare + ["batch", str(one), str(eight), "8"], check=True)
            rows.append((f"{name} 8", eight, files))
    encoder = folder / "encoder.onnx"
    if not encoder.exists():
        subprocess.run(prepare + ["encoder", str(encoder)], check=True)
    rows.append(("encoder 128 tokens", encoder, []))
    return [r for r in rows if not o.only or any(w in r[0] for w in o.only)]


def measure(o, who, path, files, threads):
    if who == "quern":
        command = [str(o.build / "quern"), "bench", str(path), "--json", "--threads", str(threads)]
        command += ["--set"] + files if files else []
    else:
        command = [sys.executable, str(ROOT / "bench/peers/onnx_rows.py"), who, str(path),
                   str(threads), str(o.seconds)] + files
    r = subprocess.run(command, capture_output=True, text=True)
    line = r.stdout.strip().splitlines()[-1] if r.stdout.strip() else ""
    if r.returncode or not line.startswith("{"):
        print(f"  {who}: {r.stderr.strip()[-300:] or 'no answer'}", file=sys.stderr)
        return None
    return json.loads(line)


def best(turns):
    """By threads the medians over the turns; the fastest count of threads."""
    result = None
    for threads, all_turns in turns.items():
        good = [t for t in all_turns if t]
        if not good:
            continue
        m = {k: statistics.median(t[k] for t in good)
             for k in ("run_ns", "first_answer_seconds", "peak_rss_bytes", "limit_ns")
             if k in good[0]}
        m["threads"] = threads
        if result is None or m["run_ns"] < result["run_ns"]:
            result = m
    return result


def run_row(o, name, path, files):
    who = ["quern"] + [p for p in PEERS if p != "openvino" or not o.no_openvino]
    turns = {w: {t: [] for t in o.threads} for w in who}
    for _ in range(o.rounds):
        for t in o.threads:
            for w in who:
                turns[w][t].append(measure(o, w, path, files, t))
    row = {"name": name}
    for w in who:
        row[w] = best(turns[w])
    return row


def ratio(row, key, peer):
    if not row.get(peer) or not row["quern"]:
        return None
    return row[peer][key] / row["quern"][key]


def text(row):
    def cell(w):
        m = row.get(w)
        return f"{m['run_ns'] / 1e6:9.3f} ms/{m['threads']}" if m else f"{'-':>14}"
    parts = [f"{row['name']:24}"] + [cell(w) for w in ("quern",) + PEERS]
    for key, peer in (("run_ns", "ort"), ("run_ns", "openvino"), ("first_answer_seconds", "ort"),
                      ("peak_rss_bytes", "ort")):
        r = ratio(row, key, peer)
        parts.append(f"{r:8.2f}" if r else f"{'-':>8}")
    q = row["quern"]
    parts.append(f"{100 * q['limit_ns'] / q['run_ns']:6.0f} %" if q else f"{'-':>8}")
    return " ".join(parts)


def main():
    o = parse()
    rows = []
    print(f"{'model, batch':24} {'quern':>14} {'ort':>14} {'openvino':>14}  vs ort vs o.v. "
          "  first  memory   limit", flush=True)
    for name, path, files in make_models(o):
        rows.append(run_row(o, name, path, files))
        print(text(rows[-1]), flush=True)
    for key, what in (("run_ns", "run"), ("first_answer_seconds", "first answer"),
                      ("peak_rss_bytes", "memory")):
        r = [x for x in (ratio(row, key, "ort") for row in rows) if x]
        if r:
            mean = math.exp(sum(math.log(x) for x in r) / len(r))
            print(f"{what}: geometric mean {mean:.2f} of ONNX Runtime's, worst {min(r):.2f}")
    (o.build / "bench-onnx.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
