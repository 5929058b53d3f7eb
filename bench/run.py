#!/usr/bin/env python3
"""The speed table: Quern beside PyTorch, row by row, the two taking turns.

Writes build/bench.json and, once the whole table is measured, docs/benchmarks.md. What is measured
is kept in build/bench/rows and not measured again unless the programs or the options change."""
import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import select
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True  # nothing beside the sources
import own_kernels  # noqa: E402
import table  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
QUICK = ["sgemm-1024", "sgemm-64x512x784", "conv-64x56-64-k3s1", "conv-dw-256x14-256-k3s1",
         "fmnist-step-128", "mlp-step-64", "gelu-16384x1024"]
IMAGES = re.compile("conv|resnet|fmnist|memory")
HEAVY = re.compile("resnet50|gpt2|adamw|block")
ALLOCATOR = "dirty_decay_ms:-1,muzzy_decay_ms:-1"
TIMEOUT_S = 1800
LONG_S = 0.004  # where a side's run takes longer, it is tried with all threads and not with fewer
FORMAT = 2      # of what is kept of a row; raise it when rows are measured or kept in another way

SIDES = {"quern": ["quern"], "torch_eager": ["eager", "channels_last"], "torch_compile": ["compile"]}


def number(kind, least):
    def read(text):
        value = kind(text)
        if not least <= value < 1e6:
            raise argparse.ArgumentTypeError(f"expected {least} or more, found '{text}'")
        return value
    read.__name__ = kind.__name__  # as argparse names it in errors
    return read


def counts(text):
    return [number(int, 1)(t) for t in text.split(",")]


def parse():
    a = argparse.ArgumentParser(prog="./do bench", description=__doc__.splitlines()[0],
                                epilog="QUERN_BENCH_PYTHON names a Python that has PyTorch; else "
                                "one is set up in $XDG_CACHE_HOME/quern/bench-venv.")
    a.add_argument("--quick", action="store_true", help="a few rows, under three minutes")
    a.add_argument("--only", action="append", metavar="WORD", help="rows whose name has the word")
    a.add_argument("--no-compile", action="store_true", help="without torch.compile")
    a.add_argument("--no-peer", action="store_true", help="Quern alone")
    a.add_argument("--busy", action="store_true",
                   help="for a machine with other work: one thread, and its CPU time")
    a.add_argument("--rounds", type=number(int, 1), help="turns of each program in a row (3)")
    a.add_argument("--seconds", type=number(float, 0), help="that a turn measures (1.0)")
    a.add_argument("--threads", type=counts, help="numbers to try, e.g. 1,4; default: one, and one a core")
    a.add_argument("--fresh", action="store_true", help="measure again what is known")
    a.add_argument("--docs", action="store_true", help="write docs/benchmarks.md in any case")
    a.add_argument("--kernels", action="store_true",
                   help="time Quern's own kernels alone, which the whole table ends with")
    a.add_argument("--list", action="store_true", help="list the rows")
    a.add_argument("--build", default="build", help=argparse.SUPPRESS)
    o = a.parse_args()
    o.rounds = o.rounds or (2 if o.quick else 3)
    o.seconds = o.seconds or (0.3 if o.quick else 1.0)
    o.no_compile = o.no_compile or o.quick
    cores = len(os.sched_getaffinity(0))
    o.thread_counts = o.threads or [1, cores]
    if o.busy:
        o.thread_counts = [1]
    o.thread_counts = sorted(set(o.thread_counts))
    o.build = ROOT / o.build
    return o


# ---- the two programs ----

class Program:
    """A process that measures when it is told to, and waits otherwise."""

    def __init__(self, command, env, log):
        self.process = subprocess.Popen(command, cwd=ROOT, env=env, text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)

    def measure(self, name):
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        ready, _, _ = select.select([self.process.stdout], [], [], TIMEOUT_S)
        line = self.process.stdout.readline() if ready else ""
        return json.loads(line) if line.startswith("{") else None

    def resident_mb(self):
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
            return int(re.search(r"VmRSS:\s*(\d+)", text)[1]) / 1024
        except (OSError, TypeError):
            return 0

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()


def jemalloc():
    text = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    found = re.search(r"libjemalloc\.so\.2 .*=> (\S+)", text)
    return found[1] if found else None


class Bench:
    def __init__(self, o):
        self.o = o
        self.folder = o.build / "bench" / "rows"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rows_program = self.own_program()
        self.log = open(self.folder.parent / "errors.log", "w")
        self.peers = {}  # by mode and threads
        self.python = None if o.no_peer else sys.executable
        self.torch = self.torch_version()
        self.allocator = jemalloc()
        self.choices = self.choices_file()
        self.peaks = {t: self.peaks_of(t) for t in o.thread_counts}

    def own_program(self):
        """A copy, so that a build meanwhile does not change what is measured."""
        copy = self.folder.parent / f"program-{os.getpid()}"
        for old in self.folder.parent.glob("program-*"):
            if not Path("/proc", old.name.split("-")[1]).exists():
                old.unlink()
        shutil.copy2(self.o.build / "bench" / "quern_bench_rows", copy)
        return copy

    def torch_version(self):
        if not self.python:
            return None
        r = subprocess.run([self.python, "-c", "import torch; print(torch.__version__)"],
                           capture_output=True, text=True)
        if r.returncode:
            sys.exit(f"./do bench: this Python has no PyTorch: {r.stderr.strip()[-200:]}")
        return r.stdout.strip()

    def hash_of_programs(self):
        h = hashlib.sha256()
        peers = [ROOT / "bench/peers" / name for name in ("torch_rows.py", "torch_models.py")]
        for path in [self.rows_program, *peers]:
            h.update(path.read_bytes())
        return h.hexdigest()[:16]

    def choices_file(self):
        """Choices of kernels hold for the program that they were measured with."""
        code = hashlib.sha256(self.rows_program.read_bytes()).hexdigest()[:16]
        return self.folder.parent / f"kernels-{code}.json"

    def quern_command(self, *words):
        command = [str(self.rows_program), *map(str, words)]
        return command + ["--cpu-time"] if self.o.busy else command

    def peaks_of(self, threads):
        r = subprocess.run(self.quern_command("--limits", "--threads", threads), cwd=ROOT,
                           capture_output=True, text=True, check=True)
        return json.loads(r.stdout)

    def open_quern(self, name, threads):
        peaks = self.peaks[threads]
        return Program(self.quern_command(
            name, "--threads", threads, "--seconds", self.o.seconds, "--choices", self.choices,
            "--peaks", f"{peaks['flops_per_s']},{peaks['bf16_flops_per_s']},{peaks['bytes_per_s']}", "--serve"),
            self.env(), self.log)

    def tune(self, name, threads):
        subprocess.run(self.quern_command(name, "--threads", threads, "--choices", self.choices,
                                          "--tune", "--serve"),
                       cwd=ROOT, stdin=subprocess.DEVNULL, env=self.env(), stderr=self.log)

    def env(self, peer=False):
        env = dict(os.environ, QUERN_BENCH_START_NS=str(time.monotonic_ns()))
        if peer and self.allocator:  # not where memory is measured, which it keeps
            env.update(LD_PRELOAD=self.allocator, MALLOC_CONF=ALLOCATOR)
        return env

    def open_peer(self, mode, threads, keeps_memory=True):
        command = [self.python, str(ROOT / "bench/peers/torch_rows.py"), "--serve", "--mode", mode,
                   "--threads", str(threads), "--seconds", str(self.o.seconds)]
        return Program(command + (["--cpu-time"] if self.o.busy else []),
                       self.env(peer=keeps_memory), self.log)

    # ---- a row ----

    def modes(self, row):
        if self.o.no_peer:
            return []
        modes = ["eager"] + (["channels_last"] if IMAGES.search(row["name"]) else [])
        return modes if self.o.no_compile or row["once"] else modes + ["compile"]

    def measure_once(self, row, side, threads):
        """A process for each measurement: of its start, or of its memory."""
        p = (self.open_quern(row["name"], threads) if side == "quern"
             else self.open_peer(side, threads, keeps_memory=row["unit"] != "MB"))
        try:
            return p.measure(row["name"])
        finally:
            p.close()

    def measure(self, row, side, threads, quern):
        if row["once"]:
            return self.measure_once(row, side, threads)
        if side == "quern":
            if threads not in quern:
                quern[threads] = self.open_quern(row["name"], threads)
            return quern[threads].measure(row["name"])
        key = (side, threads)
        if key not in self.peers:
            self.peers[key] = self.open_peer(*key)
        result = self.peers[key].measure(row["name"])
        if result is None:  # it has died; the next row gets another
            self.peers.pop(key).close()
        elif IMAGES.search(row["name"]):
            result["layout"] = "channels_last" if side == "channels_last" else "contiguous"
        return result

    def close_peers(self, every):
        for key in list(self.peers):
            if every or self.peers[key].resident_mb() > 1500:
                self.peers.pop(key).close()

    def row(self, row):
        """All sides once with each number of threads, most first, then turns of the best ones."""
        better = max if row["higher_is_better"] else min
        counts = self.o.thread_counts[-1:] if row["once"] else self.o.thread_counts
        values, layouts, limits, quern = {}, {}, [], {}
        heavy = HEAVY.search(row["name"]) is not None
        if heavy:
            self.close_peers(every=True)

        def turn(side, threads):
            m = self.measure(row, side, threads, quern)
            if m:
                values.setdefault((side, threads), []).append(m["value"])
                layouts.setdefault((side, threads), []).append(m.get("layout"))
                if m.get("limit"):
                    limits.append(m["limit"])
            return m and m.get("runs")

        def best(*sides):
            known = [k for k in values if k[0] in sides]
            return better(known, key=lambda k: statistics.median(values[k]), default=None)

        def is_short(side, threads):
            """Whether fewer threads may be faster, which they are only where a run is short."""
            runs = turn(side, threads)
            return not runs or self.o.seconds / runs <= LONG_S

        sides = ["quern", *self.modes(row)]
        for threads in reversed(counts):
            if "quern" in sides:
                self.tune(row["name"], threads)
            sides = [side for side in sides if is_short(side, threads)]
        chosen = [k for k in [best("quern"), best("eager", "channels_last"), best("compile")] if k]
        for threads in [t for t in quern if ("quern", t) not in chosen]:
            quern.pop(threads).close()
        for _ in range(self.o.rounds - 1):
            for key in chosen:
                turn(*key)
        for p in quern.values():
            p.close()
        self.close_peers(every=heavy)
        return self.summary(row, values, layouts, limits)

    def summary(self, row, values, layouts, limits):
        """What is kept of a row: the median of each side's best threads and layout.

        values, layouts: a list for each (side, threads), of its turns; limits: of Quern's."""
        better = max if row["higher_is_better"] else min
        medians = {k: statistics.median(v) for k, v in values.items()}
        out = {"name": row["name"], "unit": row["unit"], "limit": better(limits, default=None),
               "higher_is_better": row["higher_is_better"], "threads": {}, "layout": {},
               "values": {f"{k[0]}, {k[1]} threads": v for k, v in values.items()}}
        for name, sides in SIDES.items():
            known = [k for k in medians if k[0] in sides]
            key = better(known, key=medians.get, default=None)
            out[name] = medians.get(key)
            out["threads"][name] = key and key[1]
            out["layout"][name] = key and statistics.mode(layouts[key])
        peers = [v for v in (out["torch_eager"], out["torch_compile"]) if v]
        out["ratio"] = None
        if out["quern"] and peers:
            peer = better(peers)
            out["ratio"] = (out["quern"] / peer if row["higher_is_better"] else peer / out["quern"])
        return out

    # ---- the table ----

    def key(self):
        o = self.o
        return [FORMAT, self.hash_of_programs(), self.torch, o.rounds, o.seconds, o.thread_counts,
                o.no_compile, o.busy, self.allocator]

    def known(self, row, key):
        path = self.folder / (row["name"] + ".json")
        if not path.exists():
            return None
        stored = json.loads(path.read_text())
        return stored["row"] if stored["key"] == key else None

    def all_rows(self):
        r = subprocess.run([self.rows_program, "--list"], capture_output=True, text=True,
                           check=True)
        return [json.loads(line) for line in r.stdout.splitlines()]

    def wanted(self):
        rows = self.all_rows()
        if self.o.quick and not self.o.only:
            rows = [r for r in rows if r["name"] in QUICK]
        if self.o.only:
            rows = [r for r in rows if any(word in r["name"] for word in self.o.only)]
            if not rows:
                sys.exit(f"./do bench: no row's name has {' or '.join(self.o.only)}; --list prints them")
        return rows

    def settings(self):
        cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
        git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT,
                             capture_output=True, text=True).stdout.strip()
        return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
                "machine": f"{cpu[1] if cpu else platform.machine()}, "
                           f"{len(os.sched_getaffinity(0))} cores, {platform.system()} "
                           f"{platform.release()}",
                "commit": git, "torch": self.torch, "peaks": self.peaks,
                "threads": self.o.thread_counts, "rounds": self.o.rounds,
                "seconds": self.o.seconds, "cpu_time": self.o.busy,
                "allocator": f"jemalloc, MALLOC_CONF={ALLOCATOR}" if self.allocator
                else "the C library's: install libjemalloc2 for PyTorch's best",
                "command": "./do bench " + " ".join(sys.argv[1:])}

    def run(self):
        key, done = self.key(), []
        for row in self.wanted():
            result = None if self.o.fresh else self.known(row, key)
            if not result:
                start = time.monotonic()
                result = self.row(row)
                result["took_s"] = round(time.monotonic() - start, 1)
                stored = json.dumps({"key": key, "row": result}, indent=1)
                (self.folder / (row["name"] + ".json")).write_text(stored + "\n")
            done.append(result)
            print(table.line(result), flush=True)
        self.close_peers(every=True)
        return done

    def all_known(self):
        """Those of earlier runs with the same programs and options too."""
        key = self.key()
        return [r for r in (self.known(row, key) for row in self.all_rows()) if r]


def measure(o, b):
    if o.list:
        print("\n".join(r["name"] for r in b.all_rows()))
        return
    settings = b.settings()
    for line in table.about(settings):
        print(line)
    print(table.head(), flush=True)
    rows = b.run()
    for line in table.totals(rows):
        print(line)
    if os.path.getsize(b.log.name):
        print(f"what the programs complained of: {os.path.relpath(b.log.name, ROOT)}")
    kernels = own_kernels.known(o) if o.quick or o.only else own_kernels.measure(o)
    rows = b.all_known()
    out = dict(settings, rows=rows, kernels=kernels)
    (o.build / "bench.json").write_text(json.dumps(out, indent=1) + "\n")
    if o.docs or not (o.quick or o.only or o.busy or o.no_peer):
        (ROOT / "docs").mkdir(exist_ok=True)
        (ROOT / "docs/benchmarks.md").write_text(table.document(settings, rows, kernels))


def main():
    o = parse()
    if o.kernels:
        own_kernels.alone(o, ROOT / "docs/benchmarks.md")
        return
    b = Bench(o)
    try:
        measure(o, b)
    finally:
        b.rows_program.unlink()


if __name__ == "__main__":
    main()
