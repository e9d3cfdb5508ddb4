// A journal of work that is too expensive to lose: a JSON-lines file, a header line that identifies
// the work, then one line for each piece that is done, each on the disk (fsync) before the next
// begins. A run that is killed and started again reads back what was done and goes on from there.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "formats/scenario/scenario.h"

namespace syncline::tune {

class Journal {
 public:
  // Opens the journal at `path`, or begins it with `header`, an object. Throws InputError if the
  // file is not a journal, if its header differs (naming the keys that do) or a line is damaged;
  // MachineError if it cannot be written (one that was to be begun is gone then) or another process
  // has it open.
  Journal(const std::string& path, const Json& header);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::string& path() const { return path_; }
  // What was found on opening and has been appended since, in order.
  const std::vector<Json>& entries() const { return entries_; }
  // Whether the journal was begun without checksums: damage to its digits is not noticed.
  bool unchecked() const { return unchecked_; }
  // On the disk when this returns. Throws MachineError.
  void append(const Json& entry);

  // Throws InputError about entry `index`: a key that is missing or has a wrong value.
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
  bool created_ = false;  // by this run: it stood there for nobody before
  bool unchecked_ = false;
  std::vector<Json> entries_;
};

}  // namespace syncline::tune
