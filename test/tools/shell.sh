# Helpers of shell tests; read with `.`. $1: source folder, $2: build folder.
set -u
src=$1 build=$2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
checks=0

fail()
{
    echo "FAILED: $*" >&2
    exit 1
}

# refuses WORDS COMMAND…: the command must fail and print WORDS.
refuses()
{
    words=$1
    shift
    checks=$((checks + 1))
    "$@" >"$tmp/out" 2>&1 && fail "'$*' passed; expected: $words"
    grep -qF -- "$words" "$tmp/out" || { cat "$tmp/out"; fail "'$*' did not say: $words"; }
}

# passes COMMAND…: the command must succeed.
passes()
{
    checks=$((checks + 1))
    "$@" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "'$*' failed"; }
}

# has FILE LINE: the file contains exactly this line.
has()
{
    checks=$((checks + 1))
    grep -qxF -- "$2" "$1" || { cat "$1"; fail "$1 lacks the line: $2"; }
}

finish()
{
    echo "$checks checks passed"
}
