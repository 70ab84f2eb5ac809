# Completion of braid in bash: commands, options and their values are those that `--help` tells of. Source it, or put it into
# ~/.local/share/bash-completion/completions/braid.

# What `braid WORDS --help` lists: options, or the commands below.
_braid_listed() {
  "${_braid_program:-braid}" "$@" --help 2>/dev/null | sed -n \
    -e 's/^ *\(-[a-z],\)\{0,1\}\(--[a-z][a-z0-9-]*\).*/\2/p' \
    -e '/^Subcommands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p'
}

_braid() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} each
  local commands=()
  for each in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
    case $each in
      -*) break ;;
      serve | run | info | convert | quantize | split | merge | cache | bench | config | check | show | init | export | import) commands+=("$each") ;;
    esac
  done
  if [[ $previous == --* ]]; then
    local choices
    choices=$("${_braid_program:-braid}" "${commands[@]}" --help 2>/dev/null | sed -n "s/^ *$previous [A-Z]*:{\\([^}]*\\)}.*/\\1/p")
    if [ -n "$choices" ]; then
      mapfile -t COMPREPLY < <(compgen -W "${choices//,/ }" -- "$word")
      return
    fi
  fi
  mapfile -t COMPREPLY < <(compgen -W "$(_braid_listed "${commands[@]}")" -- "$word")
  [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}

complete -o filenames -F _braid braid
