// A journal of expensive work: a JSON-lines file. A header line identifies the work; one line per
// finished piece follows, each on the disk (fsync) before the next begins. A restarted run reads
// the finished pieces and continues.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "formats/scenario/scenario.h"

namespace syncline::tune {

class Journal {
 public:
  // Opens the journal at `path`, or begins it with `header`, an object. Throws InputError if the
  // file is not a journal, if its header differs (naming the keys) or a line is damaged. Throws
  // MachineError if it cannot be written (a new file is removed then) or another process has it
  // open.
  Journal(const std::string& path, const Json& header);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::string& path() const { return path_; }
  // Returns the entries found on opening and appended since, in order.
  const std::vector<Json>& entries() const { return entries_; }
  // Returns true if the journal was begun without checksums: damaged digits are not detected.
  bool lacks_checksums() const { return unchecked_; }
  // Appends an entry; it is on the disk on return. Throws MachineError.
  void append(const Json& entry);

  // Throws InputError about entry `index`: a key is missing or has a wrong value.
  [[noreturn]] void refuse(std::size_t index, const std::string& why) const;

 private:
  void lock();
  std::string whole_text() const;
  std::size_t read_lines(const std::string& text, std::vector<Json>& lines);
  void read(const Json& header);
  void begin(const Json& header);
  void check_header(const Json& found, const Json& header) const;
  void write_line(const Json& line);
  [[noreturn]] void machine_failed(const std::string& call) const;

  std::string path_;
  int file_ = -1;
  bool created_ = false;  // by this run: the file did not exist before
  bool unchecked_ = false;
  std::vector<Json> entries_;
};

}  // namespace syncline::tune
