#!/usr/bin/env bash
# Everything one does with the source tree. ./do --help lists it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

jobs=${JOBS:-$(nproc 2>/dev/null || echo 2)}
passed=0 failed=0 # tests, over all builds of one ./do test

usage()
{
    cat <<'TEXT'
usage: ./do COMMAND [--help] [arguments]

  demo            train a small network on Fashion-MNIST and show the result
  build           compile the library and the program, into build/
  test            install what is missing, build, lint, run every test
  test-minimal    build without any optional library and run the tests
  test-onnx-new   run the test cases of the newest Python package onnx
  bench           measure speed beside PyTorch's and the machine's limits
  lint            layers, names, sizes, text and formatting of the sources
  asan            the tests under AddressSanitizer and UBSan
  tsan            the tests labelled "threads" under ThreadSanitizer
  fuzz            run the fuzzers
  test-aarch64    cross-compile for aarch64 and run the tests under QEMU
  docs            write the pages of docs/ that are made from tables
  format          format the sources
  clean           remove what was built
  install-deps    install the Debian packages that packages.txt names

Variables: JOBS (parallel jobs), QUERN_SKIP_DEPS=1 (never install), CMAKE_ARGS (options for cmake).
TEXT
}

help_for()
{
    case $1 in
    demo) cat <<'TEXT' ;;
usage: ./do demo [arguments of quern train]
Installs what is missing, builds, trains recipes/fashion-mnist-demo.yaml on the CPU and shows
accuracy, loss curve and memory. The last line is a JSON summary.
TEXT
    build) cat <<'TEXT' ;;
usage: ./do build
Installs what is missing and builds build/quern, build/libquern.a and build/libquern.so.
CMAKE_ARGS="-DQUERN_WITH_ONEDNN=OFF" passes options on; QUERN_WITH_ONEDNN, _XSMM, _YAML, _JPEG,
_PNG, _ZLIB, _OPENCL, _CLBLAST, _PROTOBUF, _ONNX and _OPENMP are AUTO, ON or OFF.
TEXT
    test) cat <<'TEXT' ;;
usage: ./do test [arguments of ctest]
Installs what is missing, builds, lints, runs every test, and again without any optional library
(less those labelled "nvrtc"), under the address sanitizer (less those and those labelled "slow" or
"device", which run compiled text that it does not see) and, those labelled "threads", under the thread
sanitizer. With arguments, e.g. -R base.json or -L base, only runs those tests.
TEXT
    test-minimal) cat <<'TEXT' ;;
usage: ./do test-minimal [arguments of ctest]
Builds with every optional library off, into build-minimal/, and runs the tests.
TEXT
    test-onnx-new) cat <<'TEXT' ;;
usage: ./do test-onnx-new [arguments of quern test-onnx]
Builds, makes the test cases of the Python package onnx outside the tree, in
$XDG_CACHE_HOME/quern/onnx-cases, and runs them: what does not pass, then counts by operator and
opset. They are newer than libonnx-testdata's, which ./do test runs. QUERN_BENCH_PYTHON names a Python
that has onnx; without it the newest is installed by pip into the virtual environment of ./do bench.
TEXT
    bench) cat <<'TEXT' ;;
usage: ./do bench [--quick] [--only WORD] [--busy] [--no-compile] [--no-peer] [--rounds N]
                  [--seconds S] [--threads N,N] [--fresh] [--docs] [--list] [--kernels]
       ./do bench --onnx DIR [--only WORD] [--rounds N] [--seconds S] [--threads N,N] [--no-openvino]
       ./do bench --gpu [DEVICE] [--quick] [--only WORD] [--precision bf16|fp32] [--no-peer]
                  [--peak TFLOPS] [--minutes M]
With --gpu: limits, nets and operators on a device (cuda:0) in one call of so many minutes (9), and the
nets by PyTorch too where QUERN_BENCH_PYTHON names a Python that has it; writes build/bench-gpu.json.
With --onnx: every ONNX model of DIR beside ONNX Runtime and OpenVINO, and an encoder of BERT's shape;
writes build/bench-onnx.json. Otherwise it builds, sets up PyTorch and prints Quern's speed beside it and beside the machine's limits, row by
row, the two taking turns; writes build/bench.json and, after the whole table, docs/benchmarks.md.
An interrupted table goes on where it was.
  --quick         a few rows without torch.compile, under three minutes
  --only WORD     rows whose name has the word; may be given more than once
  --busy          for a machine with other work: one thread, and its CPU time
  --no-compile    without torch.compile
  --no-peer       Quern alone; needs no PyTorch
  --rounds N      turns of each side (3), of --seconds S each (1.0)
  --threads N,N   numbers of threads to try; default: one, and one a core
  --fresh         measure again what is known
  --docs          write docs/benchmarks.md in any case
  --list          list the rows
  --kernels       time Quern's own kernels alone, beside their limits; needs no PyTorch. The whole
                  table ends with them
QUERN_BENCH_PYTHON names a Python that has PyTorch. Without it the newest PyTorch is installed by pip
into a virtual environment, $XDG_CACHE_HOME/quern/bench-venv (some gigabytes, once); pip's own
settings, such as PIP_INDEX_URL, choose where from. `quern bench RECIPE --profile` times a recipe
node by node.
TEXT
    lint) cat <<'TEXT' ;;
usage: ./do lint
Runs tools/check_* over the sources, and clang-format 14 where it is installed.
TEXT
    asan) cat <<'TEXT' ;;
usage: ./do asan [arguments of ctest]
Builds with AddressSanitizer and UndefinedBehaviorSanitizer into build-asan/ and runs the tests.
TEXT
    tsan) cat <<'TEXT' ;;
usage: ./do tsan [arguments of ctest]
Builds with ThreadSanitizer into build-tsan/ and runs the tests labelled "threads".
TEXT
    test-aarch64) cat <<'TEXT' ;;
usage: ./do test-aarch64 [arguments of ctest]
Compiles for aarch64 without optional libraries into build-aarch64/ and runs the tests under QEMU.
Needs the packages marked "extra" in packages.txt: ./do install-deps --all.
TEXT
    fuzz) cat <<'TEXT' ;;
usage: ./do fuzz [seconds] [name...]
Builds test/fuzz/fuzz_*.c with clang into build-fuzz/ and runs each for so many seconds (60). Starts
from test/fuzz/corpus/NAME/, keeps finds in build-fuzz/corpus/NAME/, and fails with the input's
path where one crashes.
TEXT
    docs) cat <<'TEXT' ;;
usage: ./do docs [--check]
Builds and writes the pages of docs/ that the program prints from its own tables: the operators, the
manual page. --check only says which of them are out of date.
TEXT
    format) cat <<'TEXT' ;;
usage: ./do format
Formats every C file with clang-format 14.
TEXT
    clean) cat <<'TEXT' ;;
usage: ./do clean
Removes build/ and the build-*/ that the commands above make.
TEXT
    install-deps) cat <<'TEXT' ;;
usage: ./do install-deps [--all]
Installs the packages of packages.txt that are missing, with sudo where not root; with --all the
optional and extra ones too. Uses the network only when something is missing.
TEXT
    *) usage ;;
    esac
}

say()
{
    printf '== %s\n' "$*"
}

complain()
{
    printf './do: %s\n' "$*" >&2
}

die()
{
    complain "$*"
    exit 1
}

# The packages of packages.txt that are not installed; $1 is "required", "optional", "bench" or
# "extra".
missing_packages()
{
    local name kind
    while read -r name kind _; do
        [[ -z $name || $name == \#* ]] && continue
        [[ $kind == optional || $kind == extra || $kind == bench ]] || kind=required
        [[ $kind == "$1" ]] || continue
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] ||
            echo "$name"
    done <packages.txt
}

as_root()
{
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "not root and no sudo: as root, run: $*"
    fi
}

apt_install()
{
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "$@"
}

cmd_install_deps()
{
    [[ ${QUERN_SKIP_DEPS:-} == 1 ]] && return
    if ! command -v dpkg-query >/dev/null; then
        say "not a Debian system: install the like of packages.txt yourself"
        return
    fi
    local required optional=() tried=build/.optional-tried
    mapfile -t required < <(missing_packages required)
    # An optional package that could not be had is not asked for again at every run.
    if [[ ${1:-} == --all ]]; then
        mapfile -t optional < <(missing_packages optional && missing_packages extra)
    elif [[ ${1:-} == --optional ]] && ! cmp -s packages.txt "$tried"; then
        mapfile -t optional < <(missing_packages optional)
    fi
    local wanted=("${required[@]}" "${optional[@]}")
    if ((${#wanted[@]} == 0)); then
        return
    fi
    say "installing ${wanted[*]}"
    as_root apt-get update -q || say "apt-get update failed; trying with the lists at hand"
    if ((${#required[@]})); then
        apt_install "${required[@]}" || die "cannot install: ${required[*]}"
    fi
    if ((${#optional[@]})) && ! apt_install "${optional[@]}"; then
        local name
        for name in "${optional[@]}"; do
            apt_install "$name" || say "going on without the optional $name"
        done
    fi
    if [[ ${1:-} == --optional ]]; then
        mkdir -p build && cp packages.txt "$tried"
    fi
}

# build_in FOLDER [cmake option...]
build_in()
{
    local folder=$1 log=$1.log
    shift
    command -v cmake >/dev/null && command -v ninja >/dev/null ||
        die "cmake and ninja are needed: run ./do install-deps"
    # shellcheck disable=SC2086
    cmake -S . -B "$folder" -G Ninja "$@" ${CMAKE_ARGS:-} >"$log" ||
        { complain "cmake failed in $folder; $log has the rest" && return 1; }
    grep -e '-- without' "$log" || true
    mv "$log" "$folder/cmake.log"
    ninja -C "$folder" -j "$jobs" --quiet || { complain "the build in $folder failed" && return 1; }
}

# test_in FOLDER [ctest argument...]: runs the tests and adds to the tally.
test_in()
{
    local folder=$1 status=0 line
    shift
    # Tests run side by side with more threads than cores: who waits should sleep, not spin. What
    # PoCL has compiled, which takes seconds a program, is the same in every build.
    OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} \
        POCL_CACHE_DIR=${POCL_CACHE_DIR:-$PWD/build/test-cache/pocl/kcache} \
        ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$jobs" "$@" |
        tee "$folder/tests.log" || status=$?
    line=$(grep -E '^[0-9]+% tests passed, ' "$folder/tests.log" || true)
    if [[ $line =~ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]; then
        failed=$((failed + BASH_REMATCH[1]))
        passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1]))
    else
        failed=$((failed + 1))
    fi
    return "$status"
}

cmd_build()
{
    cmd_install_deps
    build_in build
}

cmd_demo()
{
    cmd_build
    [[ -x build/quern ]] || die "this tree has no program yet"
    local out=()
    [[ " $* " == *" -o "* || " $* " == *" --out"* ]] ||
        out=(-o "runs/demo-$(date +%Y%m%d-%H%M%S)") # a folder of its own, so that it can be repeated
    exec build/quern train recipes/fashion-mnist-demo.yaml "${out[@]}" "$@"
}

cmd_bench()
{
    local python=${QUERN_BENCH_PYTHON:-}
    if [[ ${1:-} == --onnx ]]; then
        shift
        cmd_bench_onnx "$@"
        return
    fi
    if [[ ${1:-} == --gpu ]]; then
        shift
        cmd_build
        exec python3 bench/gpu.py "$@"
    fi
    if [[ -z $python && " $* " =~ " --no-peer "|" --kernels " ]]; then
        python=$(command -v python3) || die "python3 is needed"
    fi
    cmd_build
    [[ -x build/bench/quern_bench_rows ]] || die "this tree has no benchmarks yet"
    if [[ -z $python ]]; then
        bench_peer
        python=$bench_venv/bin/python
    fi
    exec "$python" bench/run.py "$@"
}

# need_python MODULES...: the Python of QUERN_BENCH_PYTHON, or one in the virtual environment that
# has the modules.
need_python()
{
    python=${QUERN_BENCH_PYTHON:-$bench_venv/bin/python}
    [[ -z ${QUERN_BENCH_PYTHON:-} ]] || return 0
    (IFS=,; "$python" -c "import $*") 2>/dev/null && return
    say "installing $* into $bench_venv"
    mkdir -p "$bench_venv"
    python3 -m venv "$bench_venv" || die "python3 with its venv module is needed"
    "$python" -m pip install --quiet --upgrade "$@" numpy ||
        die "cannot install $*; QUERN_BENCH_PYTHON may name a Python that has them"
}

cmd_bench_onnx()
{
    local python
    cmd_build
    need_python onnx onnxruntime openvino
    exec "$python" bench/onnx.py "$@"
}

cmd_test_onnx_new()
{
    local python cases=${bench_venv%/*}/onnx-cases
    cmd_build
    need_python onnx
    "$python" -W ignore tools/onnx_cases.py "$cases" || die "the cases could not be made"
    build/quern test-onnx "$cases" "$@"
}

bench_venv=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/quern/bench-venv

# PyTorch in a virtual environment outside the tree, and what it is fastest with.
bench_peer()
{
    local wanted
    mapfile -t wanted < <(missing_packages bench)
    if ((${#wanted[@]})) && [[ ${QUERN_SKIP_DEPS:-} != 1 ]]; then
        say "installing ${wanted[*]}"
        as_root apt-get update -q || say "apt-get update failed; trying with the lists at hand"
        apt_install "${wanted[@]}" || say "going on without; PyTorch may be slower than it can be"
    fi
    if [[ -x $bench_venv/bin/python ]] && "$bench_venv/bin/python" -c 'import torch' 2>/dev/null; then
        return
    fi
    say "installing PyTorch into $bench_venv"
    mkdir -p "$bench_venv"
    python3 -m venv "$bench_venv" || die "python3 with its venv module is needed"
    "$bench_venv/bin/python" -m pip install --quiet --upgrade torch numpy ||
        die "cannot install PyTorch; QUERN_BENCH_PYTHON may name a Python that has it"
}

# part NAME COMMAND...: a part of ./do test; the others still run if it fails.
part()
{
    local name=$1 start=$SECONDS
    shift
    say "$name"
    if "$@"; then
        parts+=("$name $((SECONDS - start)) s")
    else
        parts+=("$name FAILED") && broken=$((broken + 1))
    fi
}

cmd_test()
{
    local parts=() broken=0
    cmd_install_deps --optional
    say "build"
    build_in build
    if (($#)); then
        test_in build "$@"
        return
    fi
    part lint tools/lint
    part tests test_in build
    part "without libraries" cmd_test_minimal
    part "address sanitizer" cmd_asan -LE 'tools|install|slow|nvrtc|device'
    if command -v clang >/dev/null; then
        part "thread sanitizer" cmd_tsan
    else
        say "without clang the thread sanitizer is left out"
    fi
    say "$(printf '%s; ' "${parts[@]}")in all $SECONDS s"
    echo "$passed passed, $failed failed"
    ((broken == 0))
}

all_off()
{
    local name
    for name in ONEDNN XSMM YAML JPEG PNG ZLIB OPENMP OPENCL CLBLAST PROTOBUF ONNX CUDA; do
        echo "-DQUERN_WITH_$name=OFF"
    done
}

cmd_test_minimal()
{
    local options
    mapfile -t options < <(all_off)
    build_in build-minimal "${options[@]}" || return
    test_in build-minimal -LE "tools|install|nvrtc" "$@"
}

cmd_test_aarch64()
{
    local options
    command -v aarch64-linux-gnu-gcc >/dev/null || die "no cross-compiler: ./do install-deps --all"
    mapfile -t options < <(all_off)
    build_in build-aarch64 --toolchain cmake/aarch64.cmake "${options[@]}"
    # Left out is what starts the program by itself, which only the emulator can run, what counts on
    # the dynamic linker's words, and what compares times.
    test_in build-aarch64 --timeout 1500 -LE "tools|install|slow|cli" \
        -E '^(onnx\.suite|api\.plugin|plan\.count)$' "$@"
}

cmd_lint()
{
    tools/lint
}

cmd_asan()
{
    build_in build-asan -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 \
        -DQUERN_SANITIZE=address,undefined || return
    (($#)) || set -- -LE "tools|install"
    LSAN_OPTIONS="suppressions=$PWD/tools/lsan.supp:print_suppressions=0:${LSAN_OPTIONS:-}" \
        test_in build-asan "$@"
}

cmd_tsan()
{
    command -v clang >/dev/null || die "clang is needed: run ./do install-deps --all"
    # libomp reports its synchronisation to TSan through Archer, which libgomp cannot.
    CC=clang build_in build-tsan -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 \
        -DQUERN_SANITIZE=thread || return
    TSAN_OPTIONS="ignore_noninstrumented_modules=1 ${TSAN_OPTIONS:-}" \
        test_in build-tsan -L threads "$@"
}

cmd_fuzz()
{
    local seconds=60 name corpus failed=0 count=0
    if [[ ${1:-} =~ ^[0-9]+$ ]]; then
        seconds=$1
        shift
    fi
    command -v clang >/dev/null || die "clang is needed: run ./do install-deps --all"
    CC=clang build_in build-fuzz -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DQUERN_FUZZ=ON \
        -DQUERN_TESTS=OFF -DQUERN_SANITIZE=address,undefined -DQUERN_WITH_OPENMP=OFF
    for fuzzer in build-fuzz/fuzz/fuzz_*; do
        [[ -x $fuzzer ]] || continue
        name=${fuzzer##*/fuzz_}
        if (($#)) && [[ " $* " != *" $name "* ]]; then
            continue
        fi
        count=$((count + 1))
        corpus=build-fuzz/corpus/$name
        mkdir -p "$corpus"
        say "fuzz $name, $seconds s"
        local seeds=()
        [[ -d test/fuzz/corpus/$name ]] && seeds=("test/fuzz/corpus/$name")
        if ! "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
            -print_final_stats=1 -verbosity=0 -artifact_prefix="build-fuzz/$name-" \
            "$corpus" "${seeds[@]}"; then
            failed=$((failed + 1))
        fi
    done
    say "$count fuzzers, $failed failed"
    ((failed == 0))
}

cmd_docs()
{
    cmd_build
    tools/gen_docs build/quern docs "$@"
}

cmd_format()
{
    local tool
    tool=$(tools/find_clang_format) || die "clang-format 14 is needed: ./do install-deps --all"
    tools/list_sources c | xargs -r "$tool" -i
}

cmd_clean()
{
    rm -rf build build-minimal build-asan build-tsan build-fuzz build-aarch64
}

command=${1:-}
case $command in
'') usage >&2 && exit 2 ;;
-h | --help | help) usage && exit 0 ;;
demo | build | test | test-minimal | test-onnx-new | bench | lint | asan | tsan | fuzz | test-aarch64 | docs | format | clean | install-deps) ;;
*)
    echo "./do: no command '$command'; ./do --help lists them" >&2
    exit 2
    ;;
esac
shift
case ${1:-} in -h | --help) help_for "$command" && exit 0 ;; esac
"cmd_${command//-/_}" "$@"
