#include "imports/format.h"

#include <zlib.h>

#include <filesystem>
#include <new>

#include "core/base/error.h"
#include "formats/text/files.h"
#include "imports/frameworks/settings.h"
#include "studies/calibrate/inspector/inspector.h"

namespace syncline::job {
namespace {

constexpr std::size_t kHead = std::size_t{1} << 16;

// Returns the first kHead bytes of a file. zlib returns them unchanged if they are not packed.
std::string first_bytes(const std::string& path) {
  gzFile file = gzdopen(open_to_read(path, "a file of a job"), "rb");
  if (file == nullptr) throw std::bad_alloc();
  std::string bytes(kHead, '\0');
  const int count = gzread(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  if (count < 0) throw InputError(path + ": cannot be read, or its gzip packing is damaged");
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

Head head_of(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return {path, true, ""};
  // The file is read twice: its beginning, then all of it.
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    throw InputError(path + ": a pipe or a device, expected a file");
  }
  return {path, false, first_bytes(path)};
}

const ImportFormat* format_of(const Head& head) {
  for (const ImportFormat& format : formats()) {
    if (format.recognises(head)) return &format;
  }
  return nullptr;
}

[[noreturn]] void fail_unknown(const Head& head) {
  if (head.bytes.find("\"strategies\"") != std::string::npos) {
    throw InputError(head.path + ": a scenario, nothing to import: `syncline run " + head.path +
                     "` reads it");
  }
  if (const auto settings = read_settings(head.path); settings && !head.directory) {
    throw InputError(head.path + ": settings of " + settings->framework +
                     ", which no job wrote: `syncline init " + head.path +
                     " --node KIND --nodes N` makes a scenario of them");
  }
  std::string known;
  for (const ImportFormat& format : formats()) {
    known += (known.empty() ? "" : "; ") + std::string(format.summary);
  }
  throw InputError(
      head.path +
      (head.bytes.empty() && !head.directory ? ": empty" : ": not a file that a job writes") +
      "; known: " + known);
}

bool is_inspector(const Head& head) {
  return head.directory ? calibrate::is_inspector_log(head.path)
                        : calibrate::is_inspector_text(head.bytes);
}

// Refuses NCCL's Inspector: its collectives make a network, but no workload.
Observed refuse_inspector(const std::vector<std::string>& files) {
  throw InputError(files.front() +
                   ": written by NCCL's Inspector: it tells what collectives took, no gradients; "
                   "`syncline calibrate logs " +
                   files.front() + " -o cluster.json` makes a cluster of it");
}

}  // namespace

std::span<const ImportFormat> formats() {
  static const std::vector<ImportFormat> rows = {
      kineto::kFormat,
      {"nccl_inspector",
       "nccl_inspector: NCCL Inspector's lines of collectives, for `syncline calibrate logs`",
       is_inspector, refuse_inspector},
      models::kSafetensors,
      models::kConfig,
      models::kTensorList,
  };
  return rows;
}

Observed read_job(const std::vector<std::string>& files) {
  const ImportFormat* format = nullptr;
  for (const std::string& file : files) {
    const Head head = head_of(file);
    const ImportFormat* own = format_of(head);
    if (own == nullptr) fail_unknown(head);
    if (format != nullptr && own != format) {
      throw InputError(file + ": " + std::string(own->name) + ", but " + files.front() + " is " +
                       std::string(format->name) + ": files of one job have one format");
    }
    format = own;
  }
  if (format == nullptr) throw InputError("no file to import");
  Observed observed = format->read(files);
  observed.format = format->name;
  if (observed.file.empty()) observed.file = files.front();
  return observed;
}

}  // namespace syncline::job
