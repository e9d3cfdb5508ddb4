"""Facts of the machine, building the kernels, and running programs beside the benchmark."""
import glob
import json
import os
import shutil
import subprocess

KERNELS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(KERNELS)
BENCH = os.path.join(KERNELS, "bench")


def output_of(*command, limit=60):
    """The standard output, or None where the command is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=ROOT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def describe(torch):
    """What a reader needs to judge the figures; `torch` may be None."""
    facts = {"git": output_of("git", "rev-parse", "HEAD"),
             "changed": bool(output_of("git", "status", "--porcelain", "--untracked-files=no")),
             "date": output_of("date", "-u", "+%Y-%m-%dT%H:%M:%SZ"),
             "nvcc": (output_of("nvcc", "--version") or "").split("\n")[-1] or None}
    query = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit"
    line = output_of("nvidia-smi", "--query-gpu=" + query, "--format=csv,noheader")
    if line:
        for key, value in zip(query.replace(".", "_").split(","), line.split("\n")[0].split(", ")):
            facts[key] = value
    if torch is not None:
        facts["torch"] = torch.__version__
        facts["cuda"] = torch.version.cuda
        if torch.cuda.is_available():
            gpu = torch.cuda.get_device_properties(0)
            facts.update({"name": gpu.name, "sm_count": gpu.multi_processor_count,
                          "l2_bytes": getattr(gpu, "L2_cache_size", None),
                          "memory_bytes": gpu.total_memory,
                          "cudnn": torch.backends.cudnn.version()})
            try:
                facts["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
            except Exception:
                facts["nccl"] = None
    return facts


def clocks():
    line = output_of("nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw",
                     "--format=csv,noheader")
    return line.split("\n")[0] if line else None


def build(build_folder, arch, jobs, limit):
    """Gives (library or None, ceilings or None, sentence of what failed or "")."""
    if not os.path.exists(os.path.join(KERNELS, "Makefile")):
        return None, None, "kernels/Makefile is not there"
    if shutil.which("nvcc") is None:
        return None, None, "nvcc is not installed"
    os.makedirs(build_folder, exist_ok=True)
    try:
        made = subprocess.run(["make", "-C", KERNELS, "-j%d" % jobs, "ARCH=" + arch,
                               "BUILD=" + build_folder], capture_output=True, text=True,
                              timeout=limit)
        if made.returncode != 0:
            return None, None, "kernels do not build: " + last_line(made.stderr)
        ceilings = os.path.join(build_folder, "libceilings.so")
        made = subprocess.run(["nvcc", "-O3", "-std=c++17", "-Xcompiler", "-fPIC", "-shared",
                               "-gencode", "arch=%s,code=%s" % (arch.replace("sm", "compute"), arch),
                               os.path.join(BENCH, "ceilings.cu"), "-o", ceilings],
                              capture_output=True, text=True, timeout=limit)
        if made.returncode != 0:
            return None, None, "ceilings.cu does not build: " + last_line(made.stderr)
    except subprocess.TimeoutExpired:
        return None, None, "the build took longer than %d s" % limit
    return os.path.join(build_folder, "libsyncline_kernels.so"), ceilings, ""


def check_programs(build_folder, arch, jobs, limit):
    """Builds kernels/check/*.cu, each against its host twin; gives their paths and a sentence."""
    names = [os.path.basename(path)[:-3] for path in
             sorted(glob.glob(os.path.join(KERNELS, "check", "*.cu")))]
    if not names:
        return [], "there are none in kernels/check"
    targets = [os.path.join(build_folder, "check", name) for name in names]
    try:
        made = subprocess.run(["make", "-C", KERNELS, "-j%d" % jobs, "ARCH=" + arch,
                               "BUILD=" + build_folder] + targets, capture_output=True, text=True,
                              timeout=limit)
    except subprocess.TimeoutExpired:
        return [], "their build took longer than %d s" % limit
    if made.returncode != 0:
        return [], "they do not build: " + last_line(made.stderr)
    return targets, ""


def run_program(path, limit, prefix=()):
    """{"name", "status": passed, failed, skipped or cut off, "detail"}."""
    name = os.path.basename(path)
    try:
        done = subprocess.run(list(prefix) + [path], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"name": name, "status": "cut off", "detail": ": longer than %d s" % limit}
    except OSError as error:
        return {"name": name, "status": "failed", "detail": ": %s" % error}
    last = last_line(done.stdout) or last_line(done.stderr)
    if done.returncode == 77:
        return {"name": name, "status": "skipped", "detail": ": " + last}
    return {"name": name, "status": "passed" if done.returncode == 0 else "failed",
            "detail": ": " + last if last else ""}


def nccl_check(build, arch, jobs, limit, run):
    """backend_nccl's check: correctness, then step times at 1 Gbit/s. {"status", "detail",
    "reports": what it wrote, "tables": what it printed}."""
    results = os.path.abspath(os.path.join(build, "nccl"))
    os.makedirs(results, exist_ok=True)
    command = ["make", "-C", os.path.join(ROOT, "backend_nccl"), "-j%d" % jobs, "ARCH=" + arch,
               "BUILD=" + results, "OUT=" + results, "TIMED_RANKS=2", "check" if run else "all"]
    # Headers that were carried along, where the machine has none of its own.
    for name in ("EIGEN_INCLUDE", "JSON_INCLUDE", "BOOST_INCLUDE"):
        if os.environ.get(name):
            command.append("%s=%s" % (name, os.environ[name]))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"status": "cut off", "detail": ": longer than %d s" % limit}
    except OSError as error:
        return {"status": "failed", "detail": ": %s" % error}
    if done.returncode != 0 and not run:
        return {"status": "failed", "detail": ": build: " + last_line(done.stderr)}
    if not run:
        return {"status": "built", "detail": ", not run: no GPU"}
    answer = {"status": "passed" if done.returncode == 0 else "failed",
              "detail": "" if done.returncode == 0 else ": " + last_line(done.stderr),
              "tables": done.stdout, "reports": {}}
    for name in ("nccl_correctness.json", "nccl_timing.json"):
        path = os.path.join(results, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as report:
                answer["reports"][name] = json.load(report)
    return answer


def sanitize(programs, limit):
    """compute-sanitizer over the check programs. Some machines refuse it: that is no pass."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(tool):
        return {"status": "SKIPPED", "detail": ": compute-sanitizer is not installed"}
    if not programs:
        return {"status": "SKIPPED", "detail": ": there are no check programs"}
    answers = []
    for path in programs:
        answer = run_program(path, limit, (tool, "--tool", "memcheck", "--error-exitcode", "1"))
        text = answer["detail"].lower()
        if answer["status"] == "failed" and any(word in text for word in (
                "not supported", "insufficient permissions", "unable to", "failed to launch",
                "debugger", "device not")):
            return {"status": "SKIPPED", "detail": ": this machine refuses it" + answer["detail"]}
        answers.append(answer)
    told = "; ".join("%(name)s %(status)s%(detail)s" % a for a in answers)
    if any(a["status"] == "failed" for a in answers):
        return {"status": "FAILED", "detail": ": " + told}
    if any(a["status"] != "passed" for a in answers):
        return {"status": "SKIPPED in part", "detail": ": " + told}
    return {"status": "passed", "detail": ": memcheck on " + ", ".join(a["name"] for a in answers)}


def last_line(text):
    lines = [line for line in text.strip().split("\n") if line.strip()]
    return lines[-1][:200] if lines else ""
