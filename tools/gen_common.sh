# Helpers of the generators; read with `.`, not run.
LC_ALL=C
export LC_ALL

die()
{
    echo "${0##*/}: $*" >&2
    exit 1
}

# put FILE: standard input becomes FILE, which stays untouched (and so up to date) if it is the same.
put()
{
    mkdir -p "${1%/*}" || die "cannot make ${1%/*}"
    cat >"$1.tmp$$" || die "cannot write $1.tmp$$"
    if cmp -s "$1.tmp$$" "$1"; then
        rm -f "$1.tmp$$"
    else
        mv "$1.tmp$$" "$1"
    fi
}

# list_macro NAME: the words on standard input as an X-macro list.
list_macro()
{
    awk -v name="$1" 'BEGIN { printf "#define %s(X)", name }
        { printf " \\\n    X(%s)", $1 } END { print "" }'
}

# descriptors TYPE PREFIX FILE...: the sorted names x of lines "const TYPE PREFIXx = {".
descriptors()
{
    type=$1 prefix=$2
    shift 2
    [ $# -gt 0 ] || return 0
    sed -n "s/^const $type $prefix\\([A-Za-z0-9_]*\\) = {\$/\\1/p" "$@" | sort >"$tmp/names"
    twice=$(uniq -d "$tmp/names")
    [ -z "$twice" ] || die "defined twice: $prefix$twice"
    cat "$tmp/names"
}

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
