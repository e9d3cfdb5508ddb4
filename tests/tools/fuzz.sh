#!/bin/sh
# Each fuzzer of a build folder for some seconds, from its corpus, several at a time:
#   fuzz.sh FOLDER SECONDS [GLOB [JOBS]]
# One line each: runs, runs a second, coverage (edges), findings. What they find lies in
# FOLDER/found/NAME; ends with 1 where an input was neither read nor refused.
set -u

# fuzz.sh --one SECONDS FUZZER: the line of one. Inputs are no longer than the longest that was picked
# by hand: time goes as the length. libFuzzer's entropic schedule takes half of all time where there
# are as many features as in a scenario, for no more coverage; deep stacks of allocations are of use
# only where a finding is run again.
if [ "$1" = --one ]; then
  seconds=$2
  fuzzer=$3
  name=$(basename "$fuzzer" _fuzz)
  found=$(dirname "$fuzzer")/found/$name
  corpus=$(dirname "$0")/../fuzz/corpus/$name
  mkdir -p "$found/new"
  longest=$(find "$corpus" -type f -size +2k -printf '%s\n' | sort -n | tail -n 1)
  ASAN_OPTIONS=malloc_context_size=1:quarantine_size_mb=8 \
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len="${longest:-2048}" \
      -entropic=0 -print_final_stats=1 -artifact_prefix="$found/" "$found/new" "$corpus" \
      >"$found/log" 2>&1
  ended=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found/log" | tail -n 1)
  rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$found/log" | tail -n 1)
  edges=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$found/log" | tail -n 1)
  findings=$(find "$found" -maxdepth 1 -name 'crash-*' -o -maxdepth 1 -name 'timeout-*' \
                 -o -maxdepth 1 -name 'oom-*' -o -maxdepth 1 -name 'leak-*' | wc -l)
  printf '%-16s %12s %10s %10s %9s\n' "$name" "${runs:-0}" "${rate:-0}" "${edges:-0}" "$findings"
  exit "$((ended != 0))"
fi

printf '%-16s %12s %10s %10s %9s\n' target runs 'runs/s' coverage findings
printf '%s\n' "$1"/${3:-*}_fuzz | xargs -P "${4:-1}" -I '{}' "$0" --one "$2" '{}' || exit 1
