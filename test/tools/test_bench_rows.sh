# labels: tools
# The program of the speed table's rows: what it times runs as under `quern`, and says so.
. "$1/test/tools/shell.sh"
bench=$build/bench/quern_bench_rows
[ -x "$bench" ] || { echo "skipped: no benchmarks in this build"; exit 77; }

# spins WORDS [SETTING…]: what the program says of OpenMP's threads, the settings in its environment.
spins()
{
    words=$1
    shift
    passes env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY "$@" "$bench" --limits --threads 1
    grep -qF "\"spinning\": \"$words\"" "$tmp/out" || { cat "$tmp/out"; fail "not $words"; }
}

spins OMP_WAIT_POLICY=passive OMP_WAIT_POLICY=passive
spins GOMP_SPINCOUNT=3 GOMP_SPINCOUNT=3 OMP_WAIT_POLICY=passive
if nm -D "$bench" 2>/dev/null | grep -q ' GOMP_'; then # GNU's, whose spinning the programs bound
    spins GOMP_SPINCOUNT=2000
    for program in "$bench" "$build/bench/quern_bench_kernels" "$build/quern"; do
        checks=$((checks + 1))
        env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose "$program" --help \
            >"$tmp/out" 2>&1
        grep -q "GOMP_SPINCOUNT = '2000'" "$tmp/out" || fail "$program waits in another way"
    done
fi
refuses "usage" "$bench" --nonsense
finish
