#!/usr/bin/env bash
# The first hour for a machine that has a GPU, CUDA and python3 with torch, and none of our packages:
# the program with the libraries it needs, the kernels' checks, and the scripts, in one archive.
#
#   scenarios/gpu/pack.sh PROGRAM GPU_CHECK ARCHIVE.tar.xz
#
# There: tar xf ARCHIVE.tar.xz && gpu-hour/run. The C and C++ libraries are that machine's own.
set -euo pipefail
program=$(realpath "$1") check=$(realpath "$2") archive=$(realpath -m "$3")
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
pack=$folder/gpu-hour
mkdir -p "$pack/lib" "$pack/scenarios/workloads"
cp "$program" "$pack/syncline"
for module in live nccl gloo; do cp "$(dirname "$program")/libsyncline_$module.so" "$pack/"; done
cp "$check" "$pack/gpu_check"
cp -r scenarios/gpu scenarios/experiment.py "$pack/scenarios/"
cp scenarios/workloads/resnet50_v100.json "$pack/scenarios/workloads/"
own='/(ld-linux.*|libc|libm|libstdc\+\+|libgcc_s|libpthread|libresolv|libdl|librt)\.so'
libraries() { ldd "$1" | awk '$3 ~ /^\// {print $3}' | grep -vE "$own"; }
# The lab shapes links by these.
for tool in ip tc; do cp "$(PATH=$PATH:/usr/sbin:/sbin command -v $tool)" "$pack/$tool"; done
for binary in "$pack/syncline" "$pack"/*.so "$pack/ip" "$pack/tc"; do libraries "$binary"; done | sort -u |
  while read -r library; do cp -L "$library" "$pack/lib/"; done
strip "$pack"/lib/* 2>/dev/null || true
cat >"$pack/run" <<'RUN'
#!/usr/bin/env bash
# Options go to scenarios/gpu/hour.py.
here=$(cd "$(dirname "$0")" && pwd)
nccl=$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0] + "/lib")' 2>/dev/null)
libraries=$here/lib${nccl:+:$nccl}
wrapped() { printf '#!/bin/sh\nLD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH exec %s "$@"\n' "$libraries" "$here/$1" >"$2" && chmod +x "$2"; }
mkdir -p "$here/bin"
wrapped syncline "$here/bin/syncline"
for tool in ip tc; do
  command -v $tool >/dev/null || [ -x /usr/sbin/$tool ] || wrapped $tool /usr/sbin/$tool 2>/dev/null || true
done
export SYNCLINE=$here/bin/syncline SYNCLINE_GPU_CHECK=$here/gpu_check
exec python3 "$here/scenarios/gpu/hour.py" --out "$here/result" "$@"
RUN
chmod +x "$pack/run" "$pack/gpu_check" "$pack/syncline"
tar cJf "$archive" -C "$folder" gpu-hour
echo "wrote $archive, $(du -h "$archive" | cut -f1)"
