// Each line ends in the checksum of the rest, as a member "sum". A last line that was cut off by a
// kill is dropped; any other damage is an error. Journals without checksums, from older versions,
// can be continued.
#include "studies/machines/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/base/error.h"
#include "formats/json/text.h"
#include "formats/text/fingerprint.h"

namespace syncline::tune {
namespace {

constexpr std::string_view kSumBegins = ",\"sum\":\"";
constexpr std::string_view kSumEnds = "\"}";

// Returns the object as one line with its checksum as the last member.
std::string summed(const Json& object) {
  std::string text = object.dump();
  const std::string sum = fingerprint(text);
  text.pop_back();
  return text.append(kSumBegins) + sum + std::string(kSumEnds);
}

// A line of the file.
struct Line {
  Json object;  // null: damaged
  bool summed = false;
};

Line line_in(std::string text) {
  Line line;
  const std::size_t sum = fingerprint("").size();
  const std::size_t tail = kSumBegins.size() + sum + kSumEnds.size();
  const std::size_t cut = text.size() - std::min(text.size(), tail);
  line.summed = text.compare(cut, kSumBegins.size(), kSumBegins) == 0;
  if (line.summed) {
    const bool ends = text.ends_with(kSumEnds);
    const std::string said = text.substr(cut + kSumBegins.size(), sum);
    text.resize(cut);
    text += '}';
    if (!ends || fingerprint(text) != said) return line;
  }
  auto parsed = try_parse_json(text);
  if (parsed && parsed->is_object()) line.object = std::move(*parsed);
  return line;
}

// Syncs the folder of a new file: only then is the file's name on the disk.
void sync_folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY);
  if (folder < 0) return;
  ::fsync(folder);  // some file systems do not support this: the journal's own fsync has to do then
  ::close(folder);
}

}  // namespace

Journal::Journal(const std::string& path, const Json& header) : path_(path) {
  constexpr int kHow = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC;
  file_ = ::open(path.c_str(), kHow | O_EXCL, 0644);
  created_ = file_ >= 0;
  if (file_ < 0) file_ = ::open(path.c_str(), kHow, 0644);
  if (file_ < 0) machine_failed("open");
  try {
    lock();
    read(header);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

Journal::~Journal() { ::close(file_); }

// Locks the journal: two runs on it would measure everything twice and interleave their lines. The
// kernel releases the lock at the process's end, however it ends.
void Journal::lock() {
  if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno != EWOULDBLOCK) machine_failed("flock");
  throw MachineError(path_ + ": another run has this journal open");
}

std::string Journal::whole_text() const {
  constexpr off_t kLargest = off_t{256} << 20;
  struct stat status {};
  if (::fstat(file_, &status) != 0) machine_failed("fstat");
  if (!S_ISREG(status.st_mode)) throw InputError(path_ + ": not an ordinary file");
  if (status.st_size > kLargest) {
    throw InputError(path_ + ": " + std::to_string(status.st_size >> 20) +
                     " MiB, expected a journal of at most " + std::to_string(kLargest >> 20) +
                     " MiB");
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t count =
        ::pread(file_, text.data() + got, text.size() - got, static_cast<off_t>(got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) machine_failed("read");
    got += static_cast<std::size_t>(count);
  }
  return text;
}

// Reads the whole lines and returns their end. A last line that is incomplete was being written
// during a kill: it does not count.
std::size_t Journal::read_lines(const std::string& text, std::vector<Json>& lines) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const bool last = end == std::string::npos || end + 1 == text.size();
    if (end == std::string::npos) break;
    Line line = line_in(text.substr(at, end - at));
    if (lines.empty()) unchecked_ = !line.summed;
    if (line.object.is_null() || (!line.summed && !unchecked_)) {
      if (last && !lines.empty()) break;
      throw InputError(path_ + ": line " + std::to_string(lines.size() + 1) +
                       (line.summed ? " differs from its checksum: the journal is damaged"
                                    : " is not a JSON object with its checksum: this is not a "
                                      "journal, or it is damaged"));
    }
    lines.push_back(std::move(line.object));
    at = kept = end + 1;
  }
  return kept;
}

void Journal::read(const Json& header) {
  const std::string text = whole_text();
  std::vector<Json> lines;
  const std::size_t kept = read_lines(text, lines);

  // A file shorter than a header is a journal only if it is the beginning of one.
  if (lines.empty()) {
    if ((summed(header) + "\n").compare(0, text.size(), text) != 0) {
      throw InputError(path_ + ": not a journal of this work");
    }
  } else {
    check_header(lines.front(), header);
  }
  if (kept < text.size() && ::ftruncate(file_, static_cast<off_t>(kept)) != 0) {
    machine_failed("ftruncate");
  }
  if (lines.empty()) {
    begin(header);
    return;
  }
  entries_.assign(lines.begin() + 1, lines.end());
}

// Writes the header. If the disk has no room for it, removes the new file, which has no entries.
void Journal::begin(const Json& header) {
  try {
    write_line(header);
  } catch (const MachineError&) {
    if (created_) ::unlink(path_.c_str());
    throw;
  }
  sync_folder_of(path_);
}

void Journal::check_header(const Json& found, const Json& header) const {
  std::string differences;
  const auto differ = [&](const std::string& key, const Json& other, const Json& wanted) {
    differences += (differences.empty() ? "" : "; ") + key + " is " + other.dump() + " there and " +
                   wanted.dump() + " here";
  };
  for (const auto& [key, wanted] : header.items()) {
    const Json other = found.value(key, Json());
    if (other != wanted) differ(key, other, wanted);
  }
  for (const auto& [key, other] : found.items()) {
    if (!header.contains(key)) differ(key, other, Json());
  }
  if (differences.empty()) return;
  throw InputError(path_ + ": the journal of another run: " + differences +
                   ". Name another file to start over, or remove this one");
}

void Journal::append(const Json& entry) {
  write_line(entry);
  entries_.push_back(entry);
}

// Writes a line by one write: a kill leaves a beginning of the line, never a mixture.
void Journal::write_line(const Json& line) {
  const std::string text = summed(line) + "\n";
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(file_, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) machine_failed("write");
    done += static_cast<std::size_t>(wrote);
  }
  if (::fsync(file_) != 0) machine_failed("fsync");
}

void Journal::refuse(std::size_t index, const std::string& why) const {
  throw InputError(path_ + ": line " + std::to_string(index + 2) + ": " + why);
}

void Journal::machine_failed(const std::string& call) const {
  throw MachineError(path_ + ": " + call + ": " + std::strerror(errno));
}

}  // namespace syncline::tune
