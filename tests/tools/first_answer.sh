#!/bin/bash
# Installs packages where they are not, asks the README's first question of the program and of
# Python, and prints the seconds that it took to the first answer:
#   first_answer.sh EXPECTED WHEEL      into a new virtual environment
#   first_answer.sh EXPECTED DEB...     as root
# The program's answer must be that of the file EXPECTED, Python's rows the program's.
set -euo pipefail
expected=$(realpath "$1")
shift
files=()
for file; do files+=("$(realpath "$file")"); done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/empty"
cd "$folder/empty"

now() { date +%s.%N; }
begun=$(now)
case $1 in
  *.whl)
    python3 -m venv "$folder/venv"
    PATH=$folder/venv/bin:$PATH
    made=$(now)
    pip install --quiet --disable-pip-version-check --no-index "${files[@]}" ;;
  *.deb)
    apt-get update -qq
    made=$(now)
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${files[@]}" \
        >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; } ;;
esac
installed=$(now)
syncline run scenarios/resnet50_ddp.json >"$folder/answer"
answered=$(now)
diff "$expected" "$folder/answer"
syncline run scenarios/resnet50_ddp.json --format json | python3 -c '
import json, sys, syncline
sys.exit(syncline.run("scenarios/resnet50_ddp.json").rows != json.load(sys.stdin)["rows"])'
# What the program loads: readers of jobs; ranks, on Gloo.
syncline import --help >/dev/null
syncline validate scenarios/first.json --ranks 2 --set cluster.nodes=2 --repeats 1 \
    >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
awk -v name="$(. /etc/os-release && echo "$PRETTY_NAME"), ${1##*/}" -v begun="$begun" \
    -v made="$made" -v installed="$installed" -v answered="$answered" 'BEGIN {
  printf "%s: the first answer after %.1f s: %.1f s to prepare, %.1f s to install, %.1f s to ask\n",
         name, answered - begun, made - begun, installed - made, answered - installed }'
