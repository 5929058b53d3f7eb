# labels: tools
# What bash offers: commands, their options, devices after --device.
. "$1/test/tools/shell.sh"
command -v bash >/dev/null || exit 77
[ -x "$2/quern" ] || exit 77

# offers WORD… : what is offered for the last of them, a line each
offers()
{
    bash -c '
        PATH=$1:$PATH
        . "$2/tools/quern.bash"
        shift 2
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _quern
        printf "%s\n" "${COMPREPLY[@]}"' sh "$build" "$src" "$@" >"$tmp/offers"
}
build=$2

offers quern tra
has "$tmp/offers" train
offers quern train --device-
has "$tmp/offers" --device-memory
offers quern train r.yaml --device ""
has "$tmp/offers" auto
has "$tmp/offers" cuda:0
offers quern eval runs/a --device o
has "$tmp/offers" opencl:0
if grep -qx cpu "$tmp/offers"; then fail "cpu does not begin with o"; fi
finish
