# labels: tools
# The library keeps no mutable global state, but for what is listed here: counters and the error
# record of a thread. Looks at the sections of the built archive.
. "$1/test/tools/shell.sh"
command -v objdump >/dev/null || { echo "skipped: no objdump"; exit 77; }

# "file.o variable" for all that is writable (tables with pointers, relocated once, are not).
# Unnamed literals in constant tables are writable to the compiler only.
writable()
{
    objdump -t "$1" | awk '
        /:     file format/ { file = $1; sub(/:$/, "", file); next }
        / \.(data|bss|tbss|tdata)[^ \t]*[ \t]/ && $NF !~ /^(\.|__compound_literal)/ {
            if (!/rel\.ro/) { name = $NF; sub(/\.[0-9]+$/, "", name); print file, name } }' |
        LC_ALL=C sort -u
}

LC_ALL=C sort >"$tmp/allowed" <<'LIST'
fault.c.o armed_at
fault.c.o events
mem.c.o alloc_bytes
mem.c.o alloc_count
status.c.o last_error
LIST
writable "$build/libquern.a" >"$tmp/found"
has "$tmp/found" "fault.c.o events" # the search itself works
LC_ALL=C comm -13 "$tmp/allowed" "$tmp/found" >"$tmp/new"
[ -s "$tmp/new" ] && { cat "$tmp/new"; fail "mutable global state"; }

# And it finds what is planted.
cat >"$tmp/bad.c" <<'C'
static int counter;
int qn_next(void)
{
    static int calls = 5;
    return ++counter + ++calls;
}
C
passes "${CC:-cc}" -c -o "$tmp/bad.o" "$tmp/bad.c"
writable "$tmp/bad.o" >"$tmp/found"
[ "$(awk '{ printf "%s ", $2 }' "$tmp/found")" = "calls counter " ] || fail "missed a global"
finish
