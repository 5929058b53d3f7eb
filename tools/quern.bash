# bash completion for quern: the commands and theirs, their options as `quern COMMAND --help` prints
# them, models and devices of the planner, files.
_quern()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words sub
    [ "$COMP_CWORD" -gt 2 ] && sub=$(quern "${COMP_WORDS[1]}" --help 2>/dev/null |
        sed -n '/^Commands of/,$s/^  \([a-z][a-z-]*\)  .*/\1/p' | grep -Fx -- "${COMP_WORDS[2]}")
    if [ "$COMP_CWORD" -eq 1 ] || [ "${COMP_WORDS[1]}" = help ]; then
        words=$(quern --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p')
    elif [[ $word == -* ]]; then
        words=$(quern "${COMP_WORDS[1]}" $sub --help 2>/dev/null | grep -o -- '--[a-z][a-z-]*' | sort -u)
    elif [[ $before == --device ]]; then
        words="auto cpu opencl:0 cuda:0"
    elif [ "${COMP_WORDS[1]}" = plan ] && [[ $before == --gpu || $before == --from ]]; then
        # names have spaces: one a line, quoted when inserted
        mapfile -t COMPREPLY < <(quern plan devices --names 2>/dev/null |
            grep -i -- "^${word#[\"\']}" | sed 's/ /\\ /g')
        return
    elif [ "${COMP_WORDS[1]}" = plan ] && { [ "$COMP_CWORD" -eq 2 ] || [ -n "$sub" ]; }; then
        words=$(quern plan models --names 2>/dev/null)
        [ "$COMP_CWORD" -eq 2 ] && words+=" $(quern plan --help 2>/dev/null |
            sed -n '/^Commands of/,$s/^  \([a-z][a-z-]*\)  .*/\1/p')"
    elif [ "${COMP_WORDS[1]}" = ops ]; then
        words=$(quern ops 2>/dev/null | sed -n '2,$s/ .*//p')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"; compgen -f -- "$word")
}
complete -o filenames -F _quern quern
