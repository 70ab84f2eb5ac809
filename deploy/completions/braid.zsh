#compdef braid
# Completion of braid in zsh, by what `--help` tells of.
_braid() {
  local -a commands listed
  local each
  for each in ${words[2,CURRENT-1]}; do
    [[ $each == -* ]] && break
    commands+=($each)
  done
  listed=(${(f)"$(braid $commands --help 2>/dev/null | sed -n -e 's/^ *\(-[a-z],\)\{0,1\}\(--[a-z][a-z0-9-]*\).*/\2/p' -e '/^Subcommands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p')"})
  compadd -a listed
  _files
}
_braid "$@"
