# bash completion for quern: the commands, their options as `quern COMMAND --help` prints them, files.
_quern()
{
    local word=${COMP_WORDS[COMP_CWORD]} words
    if [ "$COMP_CWORD" -eq 1 ] || [ "${COMP_WORDS[1]}" = help ]; then
        words=$(quern --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p')
    elif [[ $word == -* ]]; then
        words=$(quern "${COMP_WORDS[1]}" --help 2>/dev/null | grep -o -- '--[a-z][a-z-]*' | sort -u)
    elif [ "${COMP_WORDS[1]}" = ops ]; then
        words=$(quern ops 2>/dev/null | sed -n '2,$s/ .*//p')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"; compgen -f -- "$word")
}
complete -o filenames -F _quern quern
