#!/bin/sh
# The tour that `make run` ends with: a training job's strategies, the best one, the bottleneck, and
# how far to trust the predictions; then two cases of Paddle Fleet's documentation.
#
#   scenarios/tour.sh [PROGRAM]     PROGRAM is build/syncline unless another is named
#
# docs/tour.md explains the answers.
set -eu
cd "$(dirname "$0")/.."
program=${1:-build/syncline}
job=scenarios/resnet50_ddp.json
published=scenarios/published

say() { printf '\n%s\n' "$*"; }

ask() {
  printf '\n$ build/syncline %s\n' "$*"
  "$program" "$@"
}

echo 'Which way of synchronising gradients is fastest here, and by how much?'

say '1. ResNet-50 with PyTorch DDP on 4 machines of 8 V100, joined by 10 Gbit/s Ethernet.'
ask run $job

say '2. The best strategy, and the settings of DDP that come closest.'
ask tune $job --emit pytorch

say '3. The bottleneck of the default, and the changes that gain most.'
ask explain $job --strategy default

say "4. How far to trust this: predictions compared with Paddle Fleet's and MindSpore's tables."
ask fidelity --set documents

say '5. Two of these tables: Deep Gradient Compression, then several communication streams.'
ask run $published/dgc_fasterrcnn.json
ask run scenarios/overlap_streams.json

cat <<END

6. Your own job:

   build/syncline record -o syncline_record.py   a PyTorch job writes its scenario: docs/record.md
   build/syncline import TRACE... -o my.json     or traces become one: docs/import.md
   build/syncline init MODEL --node NODE         or a model and a kind of machine
   build/syncline check my.json                  is it right, and what is assumed?
   build/syncline tune my.json                   the best strategy

docs/tour.md goes through these steps.
END
