#!/usr/bin/env bash
# The live experiments, in one run: four networks of namespaces with shaped links, links calibrated
# live, every step time predicted and then measured; the documents' DGC experiment at 1 Gbit/s and
# at what this machine gives; a threshold found on the live ranks. Needs root for the lab and about
# twenty minutes. Where it may, it runs at real-time priority: many ranks share few processors here,
# and a rank that waits for one looks like a slow network.
#
#   scenarios/live/run.sh [FOLDER]     reports go there; build/live unless told
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-build/live}
syncline=${SYNCLINE:-build/syncline}
mkdir -p "$out"
priority=
chrt -f 10 true 2>/dev/null && priority="chrt -f 10"

validate() {  # NAME, then the lab's options
  local name=$1
  shift
  echo "== $name" >&2
  $priority "$syncline" lab "$@" -- "$syncline" validate "scenarios/live/$name.json" --calibrate \
    -o "$out/$name.json" >"$out/$name.txt"
}

validate lab_2x1gbit --ranks 2 --rate 1gbit
validate lab_4x1gbit --ranks 4 --rate 1gbit
validate lab_2x5gbit --ranks 2 --rate 5gbit
validate pipeline_4x1gbit --ranks 4 --rate 1gbit
validate pipeline_8x1gbit --ranks 8 --rate 1gbit
validate lab_2x2_uplink --ranks 4 --rate 1gbit --groups 2 --uplink 500mbit
"$syncline" fidelity --live "$out"/lab_2x1gbit.json "$out"/lab_4x1gbit.json \
  "$out"/lab_2x5gbit.json "$out"/lab_2x2_uplink.json "$out"/pipeline_4x1gbit.json \
  "$out"/pipeline_8x1gbit.json | tee "$out/table.txt"

validate dgc_1gbit --ranks 2 --rate 1gbit
echo "== dgc_fastest" >&2
$priority "$syncline" validate scenarios/live/dgc_fastest.json --ranks 2 --calibrate \
  -o "$out/dgc_fastest.json" >"$out/dgc_fastest.txt"
"$syncline" fidelity --live "$out"/dgc_1gbit.json "$out"/dgc_fastest.json | tee "$out/dgc.txt"

echo "== tune_2x1gbit" >&2
$priority "$syncline" lab --ranks 2 --rate 1gbit -- "$syncline" tune scenarios/live/tune_2x1gbit.json \
  --live gloo --calibrate --steps 6 --exhaustive | tee "$out/tune.txt"
