// One event of traceEvents, read as far as this importer needs it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/job/kineto/trace.h"

namespace syncline::job::kineto {

enum class Category : std::uint8_t { kOther, kHost, kRuntime, kKernel, kCopy, kFill, kPython };

struct Event {
  Category category{};
  std::string name;
  std::string process;  // pid and tid as they stand there, without quotes
  std::string thread;
  Nanoseconds start = 0;
  Nanoseconds duration = 0;
  // Arguments; -1 and empty: not told.
  std::int64_t correlation = -1;
  std::int64_t stream = -1;
  std::int64_t device = -1;
  std::int64_t bytes = 0;
  std::vector<std::vector<std::int64_t>> shapes;  // Input Dims, lists of tensors laid flat
  std::string type;                               // of the first tensor with a known one
  std::string collective;
  std::string dtype;
  std::string group;
  std::string group_description;
  std::vector<std::int64_t> group_ranks;
  bool group_ranks_cut = false;  // torch writes the first thirty
  std::int64_t in_elements = 0;
  std::int64_t out_elements = 0;
  std::int64_t group_size = 0;
};

enum class EventReading { kRead, kSkipped, kDamaged };

class EventReader {
 public:
  EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;
  ~EventReader();

  // kBehind bytes behind the text may be read. kSkipped: an event that is not needed, of which
  // `event` may hold a part (its category and name among it where they were read).
  EventReading read(std::string_view text, Event& event);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// Whether an event of the host may say anything of synchronisation.
bool matters(std::string_view name);

}  // namespace syncline::job::kineto
