#!/bin/sh
# Each fuzzer of a build folder for some seconds, from its corpus: fuzz.sh FOLDER SECONDS [GLOB]
# One line each: runs, runs a second, coverage (edges), findings. What they find lies in
# FOLDER/found/NAME; ends with 1 where an input was neither read nor refused.
set -u
folder=$1
seconds=$2
glob=${3:-*}
corpora=$(dirname "$0")/../fuzz/corpus
failed=0
printf '%-16s %12s %10s %10s %9s\n' target runs 'runs/s' coverage findings
for fuzzer in "$folder"/${glob}_fuzz; do
  name=$(basename "$fuzzer" _fuzz)
  found=$folder/found/$name
  mkdir -p "$found/new"
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
      -print_final_stats=1 -artifact_prefix="$found/" "$found/new" "$corpora/$name" \
      >"$found/log" 2>&1 || failed=1
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found/log" | tail -n 1)
  rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$found/log" | tail -n 1)
  edges=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$found/log" | tail -n 1)
  findings=$(find "$found" -maxdepth 1 -name 'crash-*' -o -maxdepth 1 -name 'timeout-*' \
                 -o -maxdepth 1 -name 'oom-*' -o -maxdepth 1 -name 'leak-*' | wc -l)
  printf '%-16s %12s %10s %10s %9s\n' "$name" "${runs:-0}" "${rate:-0}" "${edges:-0}" "$findings"
done
exit $failed
