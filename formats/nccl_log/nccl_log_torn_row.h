// One row of a printed table. NCCL's own lines can tear it ("... sum  -1n013:161:161 [0] NCCL INFO
// ..."): it then waits for the rest of its values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/nccl_log/nccl_log_head.h"
#include "formats/nccl_log/nccl_log_parts.h"
#include "formats/nccl_log/nccl_log_words.h"

namespace syncline::calibrate {

// Returns the index of the word that begins a row, two integers and a type, or the number of words.
std::size_t find_row(const Tokens& tokens);
// Returns true for a row of an unknown type, with figures after it: "1048576 262144 fp6 ...".
bool is_row_of_unknown_type(const Tokens& tokens);

// Stores a row and the values read so far.
class TornRow {
 public:
  // Begins the row at `at` of a line; nullopt: it lacks the root that its head has. `noise`: NCCL
  // itself wrote into the line. The head must outlive the row.
  static std::optional<TornRow> begin(const LogHead& head, const Tokens& tokens, std::size_t at,
                                      int line, bool noise);

  // Adds the values of one more line. Returns true if the line belongs to the row.
  bool append(const Tokens& tokens, bool noise);
  bool complete() const { return values_.size() == wanted_; }
  int line() const { return row_.line; }
  // Notes that the rest of the row is missing; its whole measurements count.
  void cut_off();
  // Returns the row with its whole measurements; nullopt if there are none.
  std::optional<LogRow> finish() const;

 private:
  explicit TornRow(const LogHead& head) : head_(&head) {}
  bool append_from(const Tokens& tokens, std::size_t at, bool noise);
  bool append_glued(std::string_view word, bool first);
  void put(LogColumn column, const std::string& word, bool out, LogRow& row) const;

  const LogHead* head_;
  LogRow row_;
  std::size_t lead_ = 0;  // words before the row in its line
  bool in_place_only_ = false;
  std::vector<std::string> values_;
  std::size_t wanted_ = 0;  // values of a whole row
};

}  // namespace syncline::calibrate
