"""Quern's own kernels beside their limits: measured by quern_bench_kernels, shown as a table."""
import hashlib
import json
import subprocess

DIFFERS = 2  # by this factor of the share a second case is shown

TEXT = """
## Quern's own kernels

Every kernel of the CPU that is Quern's own, on {threads}, by itself. The limit is the
least time for the operator's multiply-adds and bytes, the longer of the two, at the measured peaks
of multiply-adds in f32 and of memory. The bytes are priced as if all came from memory, so that data
in a cache may beat it, and so may dot products in smaller types, and Winograd, which multiplies
less than the operator counts. A second line is a case whose share differs most, if by a factor of
{differs} or more.

"""


def stored(o):
    return o.build / "bench" / "own-kernels.json"


def read(path):
    return json.loads(path.read_text()) if path.exists() else None


def known(o):
    """What was measured last, perhaps nothing."""
    old = read(stored(o))
    return old["kernels"] if old else []


def measure(o):
    """An object a kernel and case, on as many threads as rows may use; printed. Measured again if
    the program is another one than last time."""
    program = o.build / "bench" / "quern_bench_kernels"
    threads, seconds = o.thread_counts[-1], min(o.seconds, 0.2)
    key = [hashlib.sha256(program.read_bytes()).hexdigest()[:16], threads, seconds]
    old = read(stored(o))
    if not old or old["key"] != key or o.fresh:
        r = subprocess.run([str(program), "-t", str(threads), "-s", str(seconds), "--json"],
                           capture_output=True, text=True)
        if r.returncode:
            raise RuntimeError(f"{program.name}: {r.stderr.strip()[-300:]}")
        old = {"key": key, "kernels": [json.loads(line) for line in r.stdout.splitlines()]}
        stored(o).write_text(json.dumps(old, indent=1) + "\n")
    print("\n".join(lines(old["kernels"])))
    return old["kernels"]


def alone(o, page):
    """Without the rows: replaces what build/bench.json has of them, and with --docs the page."""
    kernels, result = measure(o), read(o.build / "bench.json")
    if result:
        text = json.dumps(dict(result, kernels=kernels), indent=1)
        (o.build / "bench.json").write_text(text + "\n")
    if o.docs and page.exists():
        page.write_text(replaced(page.read_text(), kernels))


def chosen(kernels):
    """By kernel its first case, which is the typical one, and perhaps the one most unlike it."""
    groups = {}
    for k in kernels:
        if k["own"]:
            groups.setdefault(k["kernel"], []).append(k)
    out = []
    for name in sorted(groups):
        first = groups[name][0]

        def unlike(k):
            low, high = sorted([k["share"], first["share"]])
            return high / low if low > 0 else 0

        other = max(groups[name], key=unlike)
        out += [first] + ([other] if unlike(other) >= DIFFERS else [])
    return out


def microseconds(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def lines(kernels):
    return [f"{k['kernel']:<28} {microseconds(k['us']):>8} us {100 * k['share']:>5.0f} %  {k['case']}"
            for k in chosen(kernels)]


def section(kernels):
    if not kernels:
        return ""
    n = kernels[0]["threads"]
    out = [TEXT.format(threads=f"{n} threads" if n > 1 else "one thread", differs=DIFFERS),
           "| kernel | case | µs | of limit |\n|---|---|--:|--:|\n"]
    out += [f"| {k['kernel']} | `{k['case']}` | {microseconds(k['us'])} | "
            f"{100 * k['share']:.0f} % |\n" for k in chosen(kernels)]
    return "".join(out)


def replaced(document, kernels):
    """The document with its section of kernels made anew, or with one before the notes."""
    before, title, rest = document.partition(TEXT.split("\n\n")[0])
    if not title:
        before, title, rest = document.partition("\n## Reading it")
        return before + section(kernels) + title + rest
    after = rest.find("\n## ")
    return before + section(kernels) + (rest[after:] if after >= 0 else "")
