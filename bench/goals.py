"""What the speed table is to reach, what it reached, and why rows fall short."""
import fnmatch
import math
from pathlib import Path

REASONS = Path(__file__).resolve().parent / "reasons.txt"
SMALL = ("mlp-step-64", "fmnist-step-128", "fmnist-epoch")
RATIO, MEAN, SMALL_RATIO, FIRST_STEP_S, MEMORY_RATIO = 1.0, 1.3, 2.0, 1.0, 2.0
# The limit of a product in bf16 is at the faster of the measured peaks of bf16 and f32: Quern widens
# where that is faster.
SHARES = [("GEMM in f32", ("sgemm",), 0.93), ("GEMM in bf16", ("bf16gemm",), 0.93),
          ("convolutions", ("conv-",), 0.85)]


def share(r):
    """Of the limit that Quern reaches; None where there is no limit."""
    if not r["limit"] or not r["quern"]:
        return None
    return r["quern"] / r["limit"] if r["higher_is_better"] else r["limit"] / r["quern"]


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


# ---- rows that fall short ----

def wanted_ratio(r):
    return (SMALL_RATIO if r["name"] in SMALL else
            MEMORY_RATIO if r["name"].startswith("memory") else RATIO)


def shortfalls(r):
    """The goals that the row misses, as text."""
    out = []
    if r["ratio"] and r["ratio"] < wanted_ratio(r):
        out.append(f"ratio {r['ratio']:.2f}, not {wanted_ratio(r):.2f}")
    for _, starts, goal in SHARES:
        s = share(r) if r["name"].startswith(starts) else None
        if s and s < goal:
            out.append(f"{100 * s:.0f} % of the limit, not {100 * goal:.0f} %")
    if r["name"].startswith("first-step") and r["quern"] and r["quern"] > FIRST_STEP_S:
        out.append(f"{r['quern']:.2f} s, not {FIRST_STEP_S:.0f} s")
    return out


def read_reasons(path=REASONS):
    """Pairs of a pattern and a sentence, in the file's order."""
    out = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        pattern, colon, reason = line.partition(": ")
        if not colon or not pattern or " " in pattern or not reason.strip():
            raise ValueError(f"{path}:{number}: not `ROW: why it falls short`")
        out.append((pattern, reason.strip()))
    return out


def reason(name, reasons):
    found = [why for pattern, why in reasons if fnmatch.fnmatchcase(name, pattern)]
    return found[0] if found else "no reason recorded"


def short_rows(rows, reasons=None):
    """A line for each row that misses a goal: what it misses, and why."""
    reasons = read_reasons() if reasons is None else reasons
    missed = [(r["name"], shortfalls(r)) for r in rows]
    return [f"{name} ({'; '.join(what)}): {reason(name, reasons)}" for name, what in missed if what]


# ---- the goals as a whole ----

def verdict(reached):
    return "reached" if reached else "missed"


def share_goal(title, starts, goal, rows):
    shares = [(share(r), r["name"]) for r in rows if r["name"].startswith(starts) and share(r)]
    if not shares:
        return []
    good = sum(s >= goal for s, _ in shares)
    lowest, name = min(shares)
    return [f"{title}: {good} of {len(shares)} rows at {100 * goal:.0f} % of the limit or above, "
            f"geometric mean {100 * mean([s for s, _ in shares]):.0f} %, lowest {name} "
            f"{100 * lowest:.0f} %: {verdict(good == len(shares))}"]


def summary(rows):
    """A line for each goal that the rows say something of."""
    both = [r for r in rows if r["ratio"]]
    out = []
    if both:
        ahead, all_mean = sum(r["ratio"] >= RATIO for r in both), mean([r["ratio"] for r in both])
        out += [f"rows at 1.00 or above: {ahead} of {len(both)}: {verdict(ahead == len(both))}",
                f"geometric mean of {len(both)} ratios (goal {MEAN}): {all_mean:.2f}: "
                f"{verdict(all_mean >= MEAN)}"]
    small = [r["ratio"] for r in both if r["name"] in SMALL]
    if small:
        out.append(f"small nets, geometric mean (goal {SMALL_RATIO:.0f}): {mean(small):.2f}: "
                   f"{verdict(mean(small) >= SMALL_RATIO)}")
    for title, starts, goal in SHARES:
        out += share_goal(title, starts, goal, rows)
    first = [(r["quern"], r["name"]) for r in rows if r["name"].startswith("first-step")
             and r["quern"]]
    if first:
        out.append(f"first step (goal {FIRST_STEP_S:.0f} s): at most {max(first)[0]:.2f} s, "
                   f"{max(first)[1]}: {verdict(max(first)[0] <= FIRST_STEP_S)}")
    for r in both:
        if r["name"].startswith("memory"):
            out.append(f"{r['name']}, PyTorch's peak memory over Quern's (goal "
                       f"{MEMORY_RATIO:.0f}): {r['ratio']:.2f}: "
                       f"{verdict(r['ratio'] >= MEMORY_RATIO)}")
    return out
