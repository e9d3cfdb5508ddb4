#!/bin/sh
# The manual page syncline(1), made from what the program's --help and each verb's --help-all print.
#
#   docs/manual.sh [PROGRAM] > syncline.1     PROGRAM is build/syncline unless another is named
set -eu
program=${1:-build/syncline}

# A help text as roff: each positional and option a tagged paragraph. Backslashes are escaped first,
# and a line of text may not begin with a dot.
paragraphs() {
  awk '
    function text(line) {
      gsub(/\\/, "\\e", line); gsub(/-/, "\\-", line); sub(/^[.'"'"']/, "\\\\\\&&", line)
      return line
    }
    /^Usage:/ { print ".PP\n.B " text(substr($0, 8)); next }
    /^[A-Z].*:$/ {
      inside = 1; title = $0; sub(/:$/, "", title)
      if (title != "Options" && title != "Arguments") print ".PP\n.I " text(title)
      next
    }
    /^$/ { inside = 0; next }
    inside && /^  [^ ]/ {
      tag = $0; sub(/^  /, "", tag)
      rest = ""
      if (match(tag, /   */)) { rest = substr(tag, RSTART + RLENGTH); tag = substr(tag, 1, RSTART - 1) }
      print ".TP\n.B " text(tag); if (rest != "") print text(rest)
      next
    }
    inside { sub(/^ */, ""); print text($0); next }'
}

# The line that says what a verb is for: the first one of its help.
purpose() { "$program" "$@" --help | sed -n '1s/-/\\-/gp'; }

# The verbs that a help lists.
verbs() { sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p'; }

section() {
  printf '.SS %s\n' "$*"
  purpose "$@"
  "$program" "$@" --help-all | paragraphs
}

cat <<END
.TH SYNCLINE 1 "" "$("$program" --version | sed -n 1p)" "User Commands"
.SH NAME
syncline \\- how to synchronise gradients in data\\-parallel training, and what it gains
.SH SYNOPSIS
.B syncline
.I VERB
.RI [ options ]
.SH DESCRIPTION
$("$program" --help | sed -n 1p)
A scenario, a JSON file, names a workload, a cluster and strategies.
.SH VERBS
END
for verb in $("$program" --help | verbs); do
  section "$verb"
  for nested in $("$program" "$verb" --help | sed -n '/^Verbs:/,$p' | verbs); do
    section "$verb" "$nested"
  done
done
cat <<'END'
.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 2
Wrong input; the message names the file, the key, what was found and what is allowed.
.TP
.B 3
Failing machine.
.TP
.B 130
Interrupted; what is complete has been printed.
.SH EXAMPLES
.TP
.B syncline run scenarios/resnet50_ddp.json
What each strategy of a scenario costs.
.TP
.B syncline tune scenarios/resnet50_ddp.json \-\-emit pytorch
The best strategy, and the nearest that PyTorch DDP can be told.
.TP
.B syncline calibrate logs all_reduce.log \-o cluster.json
A cluster, from what nccl\-tests printed.
END
