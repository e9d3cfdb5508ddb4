#!/bin/bash
# A Debian below a folder, made by debootstrap, as root; from MIRROR where apt's own is not wanted:
#   debian.sh SUITE FOLDER                      the project built, shown and tested there, JOBS at once
#   debian.sh SUITE FOLDER COMMAND...           runs that there instead, in the sources
#   debian.sh SUITE FOLDER --empty COMMAND...   runs that in a new copy, which has Python and no
#                                               library that the project takes
# All but the empty one is kept: the system, its packages, its ccache and its build. The sources are
# the ones at hand, read only. The tests that need torch or a browser leave themselves out.
set -euo pipefail
sources=$(cd "$(dirname "$0")/../.." && pwd)
suite=$1
folder=$(mkdir -p "$2" && cd "$2" && pwd)
shift 2
base=$folder/base

# Where apt gets this machine's main archive, if that is Debian's; debootstrap knows another.
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
    'Origin: Debian' 'Component: main' 2>/dev/null | grep -v -e -security -m 1 || true)}

if [ ! -e "$folder/made" ]; then
  rm -rf "$base"
  mkdir -p "$folder/packages"
  # shellcheck disable=SC2086  # no mirror is no argument
  debootstrap --variant=minbase --include=ca-certificates,git,make,python3-venv \
      --cache-dir="$folder/packages" "$suite" "$base" $mirror >"$folder/debootstrap.log" 2>&1 \
    || { tail -n 20 "$folder/debootstrap.log" >&2; exit 1; }
  touch "$folder/made"
fi

root=$folder/root
if [ "${1:-}" = --empty ]; then
  shift
  root=$folder/empty
  rm -rf "$root"
fi
[ -e "$root" ] || cp -a "$base" "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf"

if [ $# = 0 ]; then
  # shellcheck disable=SC2016  # expanded there
  set -- bash -ec '
    make BUILD=/build JOBS="$JOBS" run
    make BUILD=/build JOBS="$JOBS" setup-python build
    ctest --test-dir /build --output-on-failure --no-tests=error -j "$JOBS"'
fi

# Its mounts end with it.
export sources root JOBS=${JOBS:-$(nproc)}
# shellcheck disable=SC2016
exec unshare --mount --propagation private bash -euc '
  mount --bind "$root" "$root"  # a root of its own, which programs there may make private
  mkdir -p "$root/src"
  mount --bind "$sources" "$root/src"
  mount -o remount,bind,ro "$root/src"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" JOBS="$JOBS" CCACHE_DIR=/ccache \
      ${http_proxy:+http_proxy="$http_proxy"} \
      GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=/src \
      bash -c "cd /src && exec \"\$@\"" debian "$@"' debian "$@"
