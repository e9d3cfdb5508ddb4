#!/bin/sh
# Removes what `make install` installed, and the folders that are empty then and bear its name.
#
#   cmake/uninstall.sh LIST [DESTDIR]     LIST: share/syncline/installed.txt of the installed tree
set -eu
list=$1
destdir=${2:-}
if [ ! -f "$list" ]; then
  echo "uninstall: $list is not there: nothing was installed below that PREFIX and DESTDIR" >&2
  exit 2
fi
# Read whole: the list is one of the files.
files=$(cat "$list" && echo)
echo "$files" | while IFS= read -r file; do
  [ -z "$file" ] || rm -f "$destdir$file"
done
rm -f "$list"
# From the innermost folder outwards; rmdir leaves those that hold anything.
echo "$files" | sed -n 's|^\(.*/[Ss]yncline\)/.*|\1|p; s|^\(.*/python3-syncline\)/.*|\1|p' | sort -u | while IFS= read -r folder; do
  rm -rf "$destdir$folder/__pycache__"  # what Python compiled
  [ ! -d "$destdir$folder" ] || find "$destdir$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true
done
echo "removed $(echo "$files" | grep -c .) files"
