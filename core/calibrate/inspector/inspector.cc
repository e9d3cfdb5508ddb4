#include "core/calibrate/inspector/inspector.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "core/calibrate/inspector/joined_ranks.h"
#include "core/error.h"

namespace syncline::calibrate {
namespace {

namespace fs = std::filesystem;

constexpr long long kLongestLine = 1ll << 24;

// A file's lines one after the other, unpacked where gzip packed it: such files are of any size.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (file_ == nullptr) throw InputError(path + ": cannot be opened");
  }
  ~Lines() { gzclose(file_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // False at the end. Throws InputError for damaged packing and for a line beyond all reason.
  bool next(std::string& line) {
    line.clear();
    const z_off_t begun = gztell(file_);
    while (gzgets(file_, part_.data(), static_cast<int>(part_.size())) != nullptr) {
      line += part_.data();
      if (line.ends_with('\n')) return true;
      if (gztell(file_) - begun > kLongestLine) {  // zeros end no line and add nothing to it
        throw InputError(path_ + ": a line of more than 16 MiB: no log of NCCL's Inspector");
      }
    }
    int error = Z_OK;
    gzerror(file_, &error);
    if (error != Z_OK) throw InputError(path_ + ": gzip: damaged or cut off");
    return !line.empty();
  }

  // How far it has come.
  long long unpacked_bytes() const { return gztell(file_); }

 private:
  std::string path_;
  gzFile file_;
  std::array<char, 1 << 16> part_{};
};

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

void add_file(const std::string& path, JoinedRanks& ranks) {
  Lines lines(path);
  std::string line;
  for (int number = 1; lines.next(line); ++number) {
    if (!blank(line)) ranks.add(path, number, line);
  }
}

// Those of a folder that may be the Inspector's, by name.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    const bool wanted =
        name.ends_with(".log") || name.ends_with(".json") || name.ends_with(".jsonl");
    std::error_code no_file;
    if (wanted && entry->is_regular_file(no_file)) files.push_back(entry->path().string());
  }
  if (error) throw InputError(folder + ": " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

bool begins_like_inspector(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  try {
    Lines lines(path);
    std::string line;
    while (lines.unpacked_bytes() < kLongestLine && lines.next(line)) {
      if (!blank(line)) return is_inspector_text(line);
    }
  } catch (const InputError&) {  // whoever reads it says what is wrong
  }
  return false;
}

}  // namespace

bool is_inspector_text(std::string_view begin) {
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || begin[first] != '{') return false;
  const std::string_view line = begin.substr(0, begin.find('\n', first));
  if (line.find("\"header\"") == std::string_view::npos) return false;
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"\"coll_perf\"", "\"p2p_perf\"", "\"dump_stats\""},
      [&](std::string_view key) { return line.find(key) != std::string_view::npos; });
}

bool is_inspector_log(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return begins_like_inspector(path);
  const std::vector<std::string> files = files_in(path);
  return std::any_of(files.begin(), files.end(), begins_like_inspector);
}

std::vector<cost::MeasuredTable> read_inspector_log(const std::string& path) {
  JoinedRanks ranks;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const std::vector<std::string> files = files_in(path);
    if (files.empty()) {
      throw InputError(path +
                       ": a folder without a file of NCCL's Inspector (NAME.log, .json or .jsonl, "
                       "also .gz; not NCCL_INSPECTOR_PROM_DUMP's)");
    }
    for (const std::string& file : files) add_file(file, ranks);
  } else {
    add_file(path, ranks);
  }
  return ranks.tables(path);
}

std::vector<cost::MeasuredTable> inspector_tables(
    const std::string& source, const std::vector<std::pair<std::string, std::string>>& files) {
  JoinedRanks ranks;
  for (const auto& [name, text] : files) {
    int number = 1;
    for (std::size_t at = 0; at < text.size(); ++number) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = std::string_view(text).substr(at, end - at);
      if (!blank(line)) ranks.add(name, number, line);
      at = end + 1;
    }
  }
  return ranks.tables(source);
}

}  // namespace syncline::calibrate
