# What the shell tests of quern plan share: sourced with $2, the folder of the build. Sets quern, dir
# (removed at the end), out and failed.
quern=$2/quern
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache # what runs leave for later predictions stays here
out=$dir/out
failed=0

# Ends the test where recipes in YAML cannot be read.
need_yaml()
{
    echo 'name: a' >"$dir/a.yaml"
    if "$quern" explain "$dir/a.yaml" 2>&1 | grep -q 'no libyaml'; then
        echo "skipped: built without libyaml"
        exit 77
    fi
}

# expect CODE TEXT ARGS...: the exit code, and a line with TEXT in what is said.
expect()
{
    code=$1 text=$2
    shift 2
    "$quern" plan "$@" >"$out" 2>&1
    got=$?
    if [ "$got" != "$code" ] || ! grep -qF -- "$text" "$out"; then
        echo "quern plan $*: exit $got, expected $code and '$text':"
        head -5 "$out"
        failed=1
    fi
}
