# Completion of braid in fish, by what `--help` tells of.
function __braid_listed
    set -l words (commandline -opc)[2..-1]
    set -l commands
    for word in $words
        string match -q -- '-*' $word; and break
        set -a commands $word
    end
    braid $commands --help 2>/dev/null | sed -n -e 's/^ *\(-[a-z],\)\{0,1\}\(--[a-z][a-z0-9-]*\).*/\2/p' -e '/^Subcommands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p'
end
complete -c braid -a '(__braid_listed)'
