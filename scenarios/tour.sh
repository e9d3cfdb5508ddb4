#!/bin/sh
# The tour that `make run` ends with: what one training job's default costs, what its best costs,
# why, and how sure that is; then what Paddle Fleet's and MindSpore's documentation show, predicted.
#
#   scenarios/tour.sh [PROGRAM]     PROGRAM is build/syncline unless another is named
#
# Longer lines are wrapped at 100 columns; docs/tour.md holds all that is printed.
set -eu
cd "$(dirname "$0")/.."
program=${1:-build/syncline}
job=scenarios/resnet50_ddp.json

# The rest of a line that is too long stands under where its sentence began: behind a dash, or
# behind a heading in a column of its own.
wrapped() {
  awk '{
    if (!match($0, /^( *- |  [a-z ]*[a-z]   *|  *)/)) RLENGTH = 0
    indent = sprintf("%" RLENGTH "s", "")
    while (length($0) > 100) {
      cut = 100
      while (cut > RLENGTH && substr($0, cut + 1, 1) != " ") --cut
      if (cut <= RLENGTH) break
      print substr($0, 1, cut)
      $0 = indent substr($0, cut + 2)
    }
    print
  }'
}

say() { printf '\n%s\n' "$*" | wrapped; }

ask() {
  printf '\n$ build/syncline %s\n' "$*"
  printed=$("$program" "$@")
}

# The table that it prints, without the columns between those that a newcomer asks for, and the
# sentence behind it.
show_table() {
  ask "$@" --format markdown
  printf '%s\n' "$printed" | grep '^|' | cut -d'|' -f1-4,6,7,12
  printf '\n%s\n' "$(printf '%s\n' "$printed" | grep fastest)" | wrapped
}

# Those lines of what it prints that match.
show_lines() {
  lines=$1
  shift
  ask "$@"
  printed=$(printf '%s\n' "$printed" | grep -E "$lines")
  printf '%s\n' "$printed" | wrapped
}

echo 'How should the gradients of a training be synchronised on these machines, and what is gained?'

say '1. ResNet-50 with PyTorch DDP on 4 machines of 8 V100, joined by 10 Gbit/s Ethernet: what do' \
    "DDP's default and other ways of exchanging its gradients cost?"
show_table run $job

say '2. Which is the best that leaves the training as it is, and what of it can DDP be told?'
show_lines 'best found|clearly more|^- (With|What makes|pytorch)|cap_mb' tune $job --emit pytorch

say "3. What holds the default up, and which settings would help?"
show_lines '^ ' explain $job --strategy default

say "4. How sure is that? Predicted and compared, the tables of Paddle Fleet's documentation:"
show_lines '^Overall|^Of the rows' fidelity --set documents

say "5. What Paddle Fleet's and MindSpore's documentation show, predicted. Of each table here the" \
    'conclusion; the command prints all of it.'
published=scenarios/published
show_lines 'fastest|not pay' run $published/paddle_fusion_counts.json
show_lines 'fastest|not pay' run $published/allreduce_topologies.json
show_lines 'fastest|not pay' run $published/dgc_fasterrcnn.json
show_lines 'fastest|not pay' run $published/localsgd_resnet50.json
show_lines 'fastest|not pay' run scenarios/overlap_streams.json

cat <<END

6. Your own job: copy $job, write your model and machines into it, and

   build/syncline check my.json     is it right, and what is assumed?
   build/syncline run my.json       what each strategy costs
   build/syncline tune my.json      the best of all; --emit pytorch (or another) for your framework

scenarios/workloads and scenarios/clusters hold models and machines; docs/scenario.md explains every
key, docs/calibrate.md makes a cluster out of what nccl-tests printed.
END
