#!/usr/bin/env bash
# Two training jobs of PyTorch record themselves in the lab: 2 ranks behind links of 1 Gbit/s. Prints
# what was recorded beside what timers in the job's own lines found, and what recording costs. Needs
# root, python3-torch, and about four minutes of a quiet machine; it asks for priority on a busy one.
#
#   scenarios/record/run.sh [FOLDER]     where the files go; build/record unless told
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-build/record}
syncline=${SYNCLINE:-build/syncline}
python=${PYTHON:-/usr/bin/python3}
mkdir -p "$out/by_hand"
"$syncline" record -o "$out/syncline_record.py"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=$out PYTHONDONTWRITEBYTECODE=1
priority=
nice -n -10 true 2>/dev/null && priority="nice -n -10"
for job in mlp convnet; do
  echo "== $job" >&2
  $priority "$syncline" lab --ranks 2 --rate 1gbit -- "$python" scenarios/record/job.py "$job" "$out"
done
"$python" scenarios/record/compare.py "$out" mlp convnet
for job in mlp convnet; do
  "$syncline" run "$out/$job.json" | grep -A 3 '^strategy'
done
