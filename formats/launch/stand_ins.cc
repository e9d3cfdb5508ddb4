#include "formats/launch/stand_ins.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "formats/json/text.h"
#include "formats/text/files.h"
#include "formats/text/visible.h"

namespace syncline::launch {
namespace {

namespace fs = std::filesystem;

constexpr long long kLargestSettings = 1 << 20;
constexpr std::size_t kMaxFiles = 32;
constexpr std::size_t kLongestName = 40;      // of a command that is missing, in characters
constexpr std::size_t kLongestCommand = 100;  // of one that failed

// Names of launchers; each leads to this script.
constexpr std::array kNames{"bash",
                            "sh",
                            "torchrun",
                            "python",
                            "python3",
                            "deepspeed",
                            "accelerate",
                            "horovodrun",
                            "mpirun",
                            "mpiexec",
                            "srun",
                            "sbatch",
                            "scontrol",
                            "composer",
                            "msrun",
                            "fleetrun",
                            "llamafactory-cli",
                            "axolotl",
                            "swift",
                            "megatron",
                            "trl",
                            "tune",
                            "litgpt",
                            "nvidia-smi",
                            "docker",
                            "podman",
                            "singularity",
                            "apptainer",
                            "ssh",
                            "pdsh",
                            "uv",
                            "poetry",
                            "conda",
                            "aprun",
                            "jsrun",
                            "numactl",
                            "taskset",
                            "nsys",
                            "ncu",
                            "rocprof",
                            "rocprofv3",
                            "rm",
                            "rmdir",
                            "kill",
                            "pkill",
                            "killall",
                            "ipcrm",
                            "sudo",
                            "pip",
                            "pip3",
                            "apt",
                            "apt-get",
                            "git",
                            "wget",
                            "curl",
                            "rsync",
                            "scp",
                            "aws",
                            "gsutil"};

constexpr const char* kStandIn = R"sh(#!/bin/sh
# Stands in for a launcher while `syncline capture` runs a script.
own=$SYNCLINE_CAPTURE
program=${0##*/}
called_as=${SYNCLINE_CAPTURE_REAL-}
unset SYNCLINE_CAPTURE_REAL

really_run() {
  [ -z "$called_as" ] || exec "$called_as" "$@"
  others=:$PATH:
  while case $others in *":$own:"*) true ;; *) false ;; esac; do
    others=${others%%":$own:"*}:${others#*":$own:"}
  done
  real=$(PATH=$others; command -v "$program") && exec "$real" "$@"
  echo "$program: command not found" >&2
  exit 127
}

write_down() {
  number=0
  [ ! -r "$own/last" ] || read -r number <"$own/last"
  until mkdir "$own/launches/$((number += 1))" 2>/dev/null; do
    [ -d "$own/launches" ] || exit 1
  done
  [ $number -lt 100 ] || kill -s TERM 0
  echo $number >"$own/last"
  here=$own/launches/$number
  printf '%s\0' "$program" "$@" >"$here/words"
  [ -z "$SYNCLINE_CAPTURE_AROUND" ] || cp "$SYNCLINE_CAPTURE_AROUND" "$here/around"
  cat /proc/$$/environ >"$here/environment"
  pwd >"$here/folder"
  count=0
  before=
  for word do
    case $word in -*=*) word=${word#*=} ;; esac
    case $before:$word in
      *.json | *.yaml | *.yml | *.toml | *.prototxt | *.conf | *host*file:*) keep "$word" ;;
    esac
    before=$word
  done
  exit 0
}

keep() {
  [ -f "$1" ] && [ -r "$1" ] && [ "$(wc -c <"$1")" -le 1048576 ] || return 0
  count=$((count + 1))
  [ $count -le 32 ] && cp -- "$1" "$here/file.$count" && printf '%s\0' "$1" >>"$here/names"
}

trains_by_name() {
  name=${1##*/}
  name=${name%.py}
  case ${name##*.} in
    train* | pretrain* | pre_train* | finetune* | fine_tune* | *_train | *_trainer | *_pretrain) ;;
    *_pretraining | *_training | *_finetuning | deepy | *_finetune | *-train | sft | *_sft | dpo | grpo | ppo | run_clm* | run_mlm* | tune) ;;
    *) return 1 ;;
  esac
}

trains_by_flags() {
  marks=0
  for word do
    case $(printf %s "${word%%=*}" | tr _ -) in
      --num-layers | --micro-batch-size | --global-batch-size | --*-model-parallel-size | --lr | \
        --per-device-train-batch-size | --gradient-accumulation-steps | --learning-rate | \
        --epochs | --num-train-epochs | --max-steps | --train-iters | --batch-size | \
        --deepspeed* | --fsdp | --output-dir | --model-name-or-path | --optimizer | --bf16 | --fp16)
        marks=$((marks + 1)) ;;
    esac
  done
  [ $marks -ge 2 ]
}

# Says if Python starts a training: by its module, the script's name, flags or text.
python_trains() {
  while :; do
    case ${1-} in
      -m)
        case ${2-} in
          torch.distributed.* | deepspeed* | accelerate.commands.* | paddle.distributed.*) return 0 ;;
          horovod.* | colossalai* | mindspore*) return 0 ;;
          *) break ;;
        esac ;;
      -[WX]) [ $# -gt 1 ] || return 1; shift 2 ;;
      '' | -c* | -?c | - | --version | --help* | -V | -h) return 1 ;;
      -*) shift ;;
      *) break ;;
    esac
  done
  module=
  [ "$1" != -m ] || { module=1; shift; }
  [ $# -gt 0 ] || return 1
  script=$1
  shift
  trains_by_name "$script" || trains_by_flags "$@" && return 0
  [ -z "$module" ] || return 1
  [ -z "$SYNCLINE_CAPTURE_AROUND" ] || return 0
  [ -e "$script" ] || return 0
  grep -Eqs 'init_process_group|DistributedDataParallel|\.backward\(|[tT]rainer\(|\.fit\(|deepspeed\.initialize|Accelerator\(|hvd\.init|fleet\.init' "$script"
}

# Says if a word begins the command that a launcher of processes is given.
begins() {
  case ${1##*/} in
    python | python3 | python3.* | torchrun | deepspeed | accelerate | composer | env) ;;
    bash | sh | zsh | hostname | echo | nvidia-smi | mkdir | ls | cat | nproc | scontrol | ip) ;;
    *.sh | *.bash) [ -f "$1" ] ;;
    *) return 1 ;;
  esac
}

# Runs a command; a launcher that is called by its path is replaced too.
run_as_named() {
  case $1 in *.sh | *.bash) [ -x "$1" ] || exec bash "$@" ;; esac
  case $1 in */*python* | */torchrun | */deepspeed | */accelerate)
    inside=${1##*/}
    case $inside in python3.*) inside=python3 ;; esac
    shift
    exec "$own/$inside" "$@" ;;
  esac
  exec "$@"
}

# Skips the options of a program that starts one command on other terms, then runs the command.
run_behind() {
  all=$#
  for word do
    ! begins "$word" || break
    all=$((all - 1))
  done
  [ $all -gt 0 ] || really_run "$@"
  while [ $# -gt $all ]; do shift; done
  run_as_named "$@"
}

# Runs the command that stands behind the options, once, as the first rank.
run_inside() {
  around=$own/around.$$
  [ -z "$SYNCLINE_CAPTURE_AROUND" ] || cp "$SYNCLINE_CAPTURE_AROUND" "$around"
  printf '%s\0' "$program" >>"$around"
  all=$*
  while [ $# -gt 0 ] && ! begins "$1"; do
    printf '%s\0' "$1" >>"$around"
    shift
  done
  [ $# -gt 0 ] || return 0
  case ${1##*/} in hostname | echo | nvidia-smi | mkdir | ls | cat | nproc | scontrol | ip) ;;
    *)
      SYNCLINE_CAPTURE_AROUND=$around
      export SYNCLINE_CAPTURE_AROUND
      : "${SLURM_PROCID:=0}" "${SLURM_LOCALID:=0}" "${SLURM_NODEID:=0}"
      export SLURM_PROCID SLURM_LOCALID SLURM_NODEID
      case $program in mpi*) OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0
        export OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK ;;
      esac ;;
  esac
  run_as_named "$@"
}

# Holds a command back: it is named, and taken to succeed without an output.
hold() {
  grep -qsxF -- "$program" "$own/held" || echo "$program" >>"$own/held"
  exit 0
}

# Removes files that are newer than this run, and holds back the removal of others.
remove_own() {
  old=
  for word do
    case $word in
      -*) ;;
      *)
        if [ -f "$word" ] && [ ! -L "$word" ] && [ "$word" -nt "$own/.stand-in" ]; then
          program=rm
          (really_run -f -- "$word")
        elif [ -e "$word" ]; then
          old=1
        fi ;;
    esac
  done
  program=${0##*/}
  [ -z "$old" ] || hold
  exit 0
}

# Runs Python; a line about GPUs that fails here is answered by those of the job, 8 if unknown.
run_python() {
  case ${1-}:${2-}:${3-} in
    -m:pip:install | -m:pip:uninstall) program="$program -m pip"; hold ;;
    -c:*device_count*)
      answer=$(really_run "$@" 2>/dev/null) && [ "$answer" -gt 0 ] 2>/dev/null && echo "$answer" && exit
      program="$program -c ...device_count() (answered ${SLURM_GPUS_ON_NODE:-8})"
      echo "${SLURM_GPUS_ON_NODE:-8}"
      hold ;;
  esac
  really_run "$@"
}

# Counts GPUs where there are none, as many as the job is given.
list_gpus() {
  answer=$(really_run "$@" 2>/dev/null) && [ -n "$answer" ] && echo "$answer" && exit
  number=0
  case " $* " in
    *" -L "* | *" --list-gpus "* | *" --query-gpu"*)
      program="nvidia-smi (answered ${SLURM_GPUS_ON_NODE:-8} GPUs)"
      case $* in *noheader* | *-L* | *--list*) ;; *) echo name ;; esac
      while [ $((number += 1)) -le "${SLURM_GPUS_ON_NODE:-8}" ]; do echo "GPU $((number - 1))"; done
      hold ;;
  esac
  grep -qsxF -- "$program" "$own/missing" || echo "$program" >>"$own/missing"
  exit 0
}

# A batch script runs here and now; what it prints is no answer of sbatch's.
run_batch() {
  case " $* " in *" --parsable "*) echo 1 ;; *) echo Submitted batch job 1 ;; esac
  while [ $# -gt 0 ]; do
    case $1 in
      --wrap=*) exec bash -c "${1#*=}" >&2 ;;
      --wrap) exec bash -c "$2" >&2 ;;
    esac
    [ ! -f "$1" ] || exec bash "$@" >&2
    shift
  done
  exec bash >&2
}

host_names() {
  case ${SLURM_JOB_NODELIST-} in "node[1-"*) ;; *) return 1 ;; esac
  number=1
  while [ $number -le "$SLURM_NNODES" ]; do
    echo node$number
    number=$((number + 1))
  done
}

# A shell that is no login's, whose files would put other folders ahead of PATH, nor plain sh, which
# reads no file at its start.
run_shell() {
  case ${1-} in
    -l | --login) shift ;;
    -lc | -cl) shift; set -- -c "$@" ;;
  esac
  program=bash
  really_run "$@"
}

case $program:${1-} in
  bash:* | sh:*) run_shell "$@" ;;
  *:--help | *:-h | *:--version) really_run "$@" ;;
  python*) if python_trains "$@"; then write_down "$@"; else run_python "$@"; fi ;;
  rm:* | rmdir:*) remove_own "$@" ;;
  pip*:install | pip*:uninstall | conda:install | conda:create | conda:env | uv:pip | uv:sync | poetry:install) hold ;;
  git:*)
    case " $* " in *" clone "* | *" pull "* | *" fetch "* | *" checkout "* | *" reset "* | *" clean "* | *" submodule "*) hold ;; esac
    really_run "$@" ;;
  kill:* | pkill:* | killall:* | ipcrm:* | sudo:* | apt*:* | wget:* | curl:* | rsync:* | scp:* | aws:* | gsutil:*) hold ;;
  pip*:*) really_run "$@" ;;
  srun:* | mpirun:* | mpiexec:* | aprun:* | jsrun:*) run_inside "$@"; write_down "$@" ;;
  uv:run | poetry:run | conda:run)
    case " $* " in *[\ /]python* | *[\ /]torchrun* | *[\ /]deepspeed* | *[\ /]accelerate*) run_inside "$@" ;; esac
    really_run "$@" ;;
  sbatch:*) run_batch "$@" ;;
  numactl:* | taskset:* | nsys:* | ncu:* | rocprof*:*) run_behind "$@" ;;
  scontrol:show) host_names || really_run "$@" ;;
  nvidia-smi:*) list_gpus "$@" ;;
  docker:* | podman:* | singularity:* | apptainer:* | ssh:* | pdsh:*)
    case $* in
      *torchrun* | *deepspeed* | *"accelerate launch"* | *torch.distributed* | *python*train*) write_down "$@" ;;
    esac
    really_run "$@" ;;
  accelerate:launch | llamafactory-cli:train | axolotl:train | swift:sft | swift:pt | swift:rlhf | tune:run | litgpt:pretrain | litgpt:finetune*) write_down "$@" ;;
  accelerate:* | llamafactory-cli:* | axolotl:* | swift:* | tune:* | litgpt:* | scontrol:* | uv:* | poetry:* | conda:*) really_run "$@" ;;
  *) write_down "$@" ;;
esac
)sh";

// Every bash reads this first. It keeps the replacements first in PATH, and makes a function for a
// launcher that is called by its path. Outside of a job it sets Slurm's variables by the script's
// #SBATCH lines. Commands that only the cluster has (module) succeed without an output, a script
// that is called by its name (train.py) counts as Python's, and a file that output is sent to gets
// its folder. `set -e` ends a script at a `cd` alone: behind it commands are for another folder.
constexpr const char* kBashStart = R"sh(
[ -z "$SYNCLINE_CAPTURE_BASH_ENV" ] || . "$SYNCLINE_CAPTURE_BASH_ENV"
command_not_found_handle() {
  case $1 in *.py) python "$@"; return ;; esac
  grep -qsxF -- "$1" "$SYNCLINE_CAPTURE/missing" || echo "$1" >>"$SYNCLINE_CAPTURE/missing"
}
syncline_before() {
  { local -; set +x; } 2>/dev/null
  local output='>>?[|]?[[:space:]]*"?([A-Za-z0-9_./${}-]+)/'
  [[ $1 =~ $output ]] && eval "mkdir -p \"${BASH_REMATCH[1]}\""
  case $PATH in "$SYNCLINE_CAPTURE":*) ;; *) PATH=$SYNCLINE_CAPTURE:$PATH ;; esac
  local word=${1%%[[:space:]]*}
  case $word in *[!A-Za-z0-9_./\${}-]*) return 0 ;; */* | \$*) ;; *) return 0 ;; esac
  eval "word=$word"
  word=${word%%[[:space:]]*}
  local name=${word##*/}
  case $name in
    python3.*) name=python3 ;;
    python | python3 | torchrun | deepspeed | accelerate | horovodrun | mpirun | mpiexec | srun) ;;
    *) return 0 ;;
  esac
  case $word in "$SYNCLINE_CAPTURE"/* | *[!A-Za-z0-9_./-]*) return 0 ;; */*) ;; *) return 0 ;; esac
  eval "function $word { SYNCLINE_CAPTURE_REAL=$word \"\$SYNCLINE_CAPTURE/$name\" \"\$@\"; }"
}
set -o functrace -o errtrace
trap '{ echo "$BASH_COMMAND" >"$SYNCLINE_CAPTURE/failed"; } 2>/dev/null' ERR
syncline_strict=
trap '{ case $-:$BASH_COMMAND in
  *e*:"cd "* | *e*:"pushd "*) ;;
  *e*:*) set +e; syncline_strict=1 ;;
  *:"cd "* | *:"pushd "*) [ -z "$syncline_strict" ] || set -e ;;
esac
syncline_before "$BASH_COMMAND"; } 2>/dev/null' DEBUG
if [ -z "${SLURM_JOB_ID-}" ] && [ -f "$0" ] && grep -q '^#SBATCH' "$0"; then
  eval "$(sh "$SYNCLINE_CAPTURE/.slurm" "$0")"
fi
)sh";

constexpr const char* kSlurmVariables = R"sh(
number() { sed -n -E "s/^#SBATCH[[:space:]]+($1)([0-9]+).*/\2/p" "$file" | tail -n 1; }
typed() { sed -n -E "s/^#SBATCH[[:space:]]+($1)([A-Za-z0-9_.-]+:)?([0-9]+).*/\3/p" "$file" | tail -n 1; }
say() { [ -z "$2" ] || echo "export $1=$2"; }
file=$1
nodes=$(number '--nodes[=[:space:]]+|-N[[:space:]]*')
nodes=${nodes:-1}
each=$(number '--ntasks-per-node[=[:space:]]+')
tasks=$(number '--ntasks[=[:space:]]+|-n[[:space:]]*')
tasks=${tasks:-$((nodes * ${each:-1}))}
gpus=$(typed '--gpus-per-node[=[:space:]]+')
gpus=${gpus:-$(typed '--gres[=[:space:]]+gpu:')}
for name in SLURM_JOB_ID SLURM_JOBID; do say $name 1; done
for name in SLURM_NNODES SLURM_JOB_NUM_NODES; do say $name $nodes; done
for name in SLURM_NTASKS SLURM_NPROCS; do say $name $tasks; done
for name in SLURM_PROCID SLURM_NODEID SLURM_LOCALID; do say $name 0; done
for name in SLURM_GPUS_PER_NODE SLURM_GPUS_ON_NODE; do say $name "$gpus"; done
for name in SLURM_JOB_NODELIST SLURM_NODELIST; do echo "export $name='node[1-$nodes]'"; done
say SLURM_NTASKS_PER_NODE "$each"
say SLURM_CPUS_PER_TASK "$(number '--cpus-per-task[=[:space:]]+|-c[[:space:]]*')"
echo 'export SLURM_SUBMIT_DIR="$PWD"'
)sh";

std::vector<std::string> parts_of(const std::string& text, char end) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (std::size_t next = 0; at < text.size(); at = next + 1) {
    next = std::min(text.find(end, at), text.size());
    parts.push_back(text.substr(at, next - at));
  }
  return parts;
}

std::string text_in(const fs::path& file) {
  std::error_code error;
  return fs::exists(file, error) ? read_text_file(file.string(), "a captured launch") : "";
}

bool begins_with_any(const std::string& text, std::initializer_list<std::string_view> begins) {
  return std::ranges::any_of(begins, [&](auto begin) { return text.starts_with(begin); });
}

std::map<std::string, std::string> heeded(const std::string& environment) {
  std::map<std::string, std::string> kept;
  for (const std::string& entry : parts_of(environment, '\0')) {
    const bool heeds = begins_with_any(
        entry, {"NCCL_",        "MASTER_",       "WORLD_SIZE=",     "RANK=",
                "LOCAL_RANK=",  "NNODES=",       "NPROC_PER_NODE=", "SLURM_NNODES=",
                "SLURM_NTASKS", "SLURM_NPROCS=", "SLURM_GPUS",      "SLURM_JOB_NUM_NODES=",
                "CUDA_",        "HOROVOD_",      "TORCH_",          "PYTORCH_",
                "ACCELERATE_",  "FSDP_",         "FLAGS_",          "PADDLE_",
                "HCCL_",        "NVTE_",         "OMP_NUM_THREADS="});
    const std::size_t equals = entry.find('=');
    if (heeds && equals != entry.npos && !not_utf8(entry)) {
      kept[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }
  return kept;
}

bool is_secret(const std::string& flag) {
  std::string name;
  for (const char c : flag.substr(0, flag.find('='))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::tolower(c));
  }
  return flag.starts_with('-') &&
         std::ranges::any_of(std::array{"apikey", "password", "secret", "hftoken", "hubtoken",
                                        "authtoken", "accesstoken", "wandbkey"},
                             [&](const char* end) { return name.ends_with(end); });
}

std::vector<std::string> without_secrets(std::vector<std::string> words) {
  constexpr const char* kLeftOut = "(left out)";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (not_utf8(words[i])) words[i] = visible(words[i]);
    if (!is_secret(words[i])) continue;
    const std::size_t equals = words[i].find('=');
    if (equals != std::string::npos) {
      words[i].resize(equals + 1);
      words[i] += kLeftOut;
    } else if (i + 1 < words.size()) {
      words[i + 1] = kLeftOut;
    }
  }
  return words;
}

// Adds to `names` the files that a file's texts name, which may be settings too.
void named_in(const Json& json, std::vector<std::string>& names) {
  if (json.is_structured()) {
    for (const auto& [key, value] : json.items()) named_in(value, names);
  } else if (json.is_string() && names.size() < 10 * kMaxFiles) {
    const std::string name = json.get<std::string>();
    for (const char* end : {".json", ".yaml", ".yml"}) {
      if (name.ends_with(end)) names.push_back(name);
    }
  }
}

std::optional<Json> parsed(const std::string& name, const std::string& text) {
  if (name.ends_with(".json")) return try_parse_json(text);
  if (!name.ends_with(".yaml") && !name.ends_with(".yml")) return std::nullopt;
  try {
    return parse_yaml(name, text);
  } catch (const InputError&) {
    return std::nullopt;  // another reader has to refuse it
  }
}

// Adds a file of settings under a name, if it exists.
void add_file(const fs::path& place, const std::string& name, CapturedLaunch& launch) {
  std::error_code error;
  if (launch.files.size() >= kMaxFiles || launch.files.contains(name)) return;
  if (!fs::is_regular_file(place, error) ||
      fs::file_size(place, error) > static_cast<std::uintmax_t>(kLargestSettings)) {
    return;
  }
  const std::string content = text_in(place);
  if (!not_utf8(content)) launch.files[name] = content;
}

// Adds settings that are named without their folder, "-d configs 20B.yml" in gpt-neox,
// "--config-path conf --config-name gpt" in Hydra.
void add_files_of_folders(CapturedLaunch& launch) {
  std::vector<fs::path> folders;
  std::vector<std::string> names;
  fs::path script;
  for (std::size_t i = 0; i < launch.words.size(); ++i) {
    const std::string& word = launch.words[i];
    const std::size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    const std::string value = equals != word.npos           ? word.substr(equals + 1)
                              : i + 1 < launch.words.size() ? launch.words[i + 1]
                                                            : "";
    const bool folder = flag == "-d" || flag == "--conf_dir" || flag == "--config-path" ||
                        flag == "--config_path" || flag == "-cp" || flag == "--config-dir";
    if (folder) folders.emplace_back(value);
    const bool yaml = word.ends_with(".yaml") || word.ends_with(".yml");
    if (flag == "--config-name" || flag == "-cn") {
      names.push_back(value.ends_with(".yaml") ? value : value + ".yaml");
    } else if (yaml && !word.starts_with('-')) {
      names.push_back(word);
    }
    if (script.empty() && word.ends_with(".py")) script = word;
  }
  if (folders.empty()) folders.emplace_back("conf");
  for (const std::string& name : names) {
    for (const fs::path& folder : folders) {
      const fs::path here = launch.folder;
      add_file(here / folder / name, name, launch);
      add_file(here / script.parent_path() / folder / name, name, launch);
    }
  }
}

// Adds the files that settings name, in the settings' folder or in the launch's.
void add_named_files(CapturedLaunch& launch) {
  const std::map<std::string, std::string> files = launch.files;
  for (const auto& [name, text] : files) {
    const auto json = parsed(name, text);
    std::vector<std::string> inside;
    if (json) named_in(*json, inside);
    for (const std::string& one : inside) {
      const fs::path folder = launch.folder;
      for (const fs::path& place : {folder / one, folder / fs::path(name).parent_path() / one}) {
        add_file(place, one, launch);
      }
    }
  }
}

// Returns a file's lines, each once.
std::vector<std::string> names_in(const fs::path& file) {
  std::vector<std::string> names;
  for (const std::string& name : parts_of(text_in(file), '\n')) {
    const std::string shown = shorten_text(visible(name), kLongestName);
    if (std::ranges::find(names, shown) == names.end()) names.push_back(shown);
  }
  return names;
}

CapturedLaunch launch_in(const fs::path& folder) {
  CapturedLaunch launch;
  launch.words = without_secrets(parts_of(text_in(folder / "words"), '\0'));
  launch.around = without_secrets(parts_of(text_in(folder / "around"), '\0'));
  launch.environment = heeded(text_in(folder / "environment"));
  launch.folder = text_in(folder / "folder");
  while (launch.folder.ends_with('\n')) launch.folder.pop_back();
  const std::vector<std::string> names = parts_of(text_in(folder / "names"), '\0');
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string content = text_in(folder / ("file." + std::to_string(i + 1)));
    if (!not_utf8(content) && !not_utf8(names[i])) launch.files[names[i]] = content;
  }
  add_files_of_folders(launch);
  add_named_files(launch);
  return launch;
}

}  // namespace

std::map<std::string, std::string> write_stand_ins(const std::string& folder) {
  const fs::path own = folder;
  fs::create_directory(own / "launches");
  const fs::path script = own / ".stand-in";
  write_file(script.string(), kStandIn);
  fs::permissions(script, fs::perms::owner_all);
  for (const char* name : kNames) fs::create_symlink(script.filename(), own / name);
  write_file((own / ".bash").string(), kBashStart);
  write_file((own / ".slurm").string(), kSlurmVariables);
  const char* path = std::getenv("PATH");
  const char* start = std::getenv("BASH_ENV");
  return {{"SYNCLINE_CAPTURE", folder},
          {"SYNCLINE_CAPTURE_AROUND", ""},
          {"SYNCLINE_CAPTURE_BASH_ENV", start != nullptr ? start : ""},
          {"BASH_ENV", (own / ".bash").string()},
          {"PATH", folder + ":" + (path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin")}};
}

std::vector<std::string> read_missing(const std::string& folder) {
  return names_in(fs::path(folder) / "missing");
}

std::vector<std::string> read_held_back(const std::string& folder) {
  return names_in(fs::path(folder) / "held");
}

std::string read_failure(const std::string& folder) {
  std::string command = visible(text_in(fs::path(folder) / "failed"));
  return shorten_text(command.substr(0, command.find('\n')), kLongestCommand);
}

std::vector<CapturedLaunch> read_launches(const std::string& folder) {
  std::vector<CapturedLaunch> launches;
  std::error_code error;
  for (int number = 1;; ++number) {
    const fs::path one = fs::path(folder) / "launches" / std::to_string(number);
    if (!fs::is_directory(one, error)) return launches;
    if (fs::exists(one / "folder", error)) launches.push_back(launch_in(one));
  }
}

}  // namespace syncline::launch
