# labels: tools
# ./do: every command explains itself, bad usage exits 2, and what is missing is found from the list.
. "$1/test/tools/shell.sh"
cd "$src" || exit 1

passes ./do --help
commands=$(sed -n 's/^  \([a-z][a-z0-9-]*\)  .*/\1/p' "$tmp/out")
[ "$(echo "$commands" | wc -l)" -ge 12 ] || fail "too few commands: $commands"
for command in $commands; do
    passes ./do "$command" --help
    grep -q "^usage: ./do $command" "$tmp/out" || fail "no usage of $command"
done
refuses "no command 'nonsense'" ./do nonsense
[ "$(./do nonsense 2>/dev/null; echo $?)" = 2 ] || fail "bad usage must exit 2"
[ "$(./do 2>/dev/null; echo $?)" = 2 ] || fail "no command must exit 2"

# With everything installed, nothing is run; with something missing, apt-get is asked for just that.
copy=$tmp/copy bin=$tmp/bin
mkdir -p "$copy" "$bin"
cp do "$copy/"
printf '# list\nhere\ngone   # needed\nnice   optional\nrare   extra\n' >"$copy/packages.txt"
printf '#!/bin/sh\nfor last; do :; done\ncase $last in here) printf installed ;; *) exit 1 ;; esac\n' \
    >"$bin/dpkg-query"
printf '#!/bin/sh\necho "$@" >>"%s/asked"\n' "$tmp" >"$bin/apt-get"
printf '#!/bin/sh\nexec "$@"\n' >"$bin/sudo"
chmod +x "$bin"/*
PATH=$bin:$PATH
passes "$copy/do" install-deps
has "$tmp/asked" 'install -y -q --no-install-recommends gone'
passes "$copy/do" install-deps --all
has "$tmp/asked" 'install -y -q --no-install-recommends nice rare'
rm "$tmp/asked"
printf 'here\n' >"$copy/packages.txt"
passes "$copy/do" install-deps
[ -e "$tmp/asked" ] && fail "used the network with nothing missing"
printf 'gone\n' >"$copy/packages.txt"
passes env QUERN_SKIP_DEPS=1 "$copy/do" install-deps
[ -e "$tmp/asked" ] && fail "installed despite QUERN_SKIP_DEPS"
finish
