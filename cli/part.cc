#include "cli/part.h"

#include <charconv>
#include <cstdlib>

#include "core/error.h"
#include "core/visible.h"

namespace syncline::cli {
namespace {

// No number: 0.
std::size_t number_of(const std::string& text) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end ? value : 0;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

measure::Part checked(measure::Part part, const std::string& from) {
  if (part.number >= 1 && part.number <= part.count) return part;
  throw InputError("--part: found '" + shortened(visible(from), 60) +
                   "', expected I/N with I from 1 to N, or auto");
}

// Open MPI counts ranks from 0, a Slurm array from wherever it begins.
measure::Part part_of_launcher() {
  std::string place = variable("OMPI_COMM_WORLD_RANK");
  std::string count = variable("OMPI_COMM_WORLD_SIZE");
  std::string first = "0";
  if (place.empty()) {
    place = variable("SLURM_ARRAY_TASK_ID");
    count = variable("SLURM_ARRAY_TASK_COUNT");
    first = variable("SLURM_ARRAY_TASK_MIN");
  }
  if (place.empty()) {
    throw InputError(
        "--part auto: neither Open MPI (OMPI_COMM_WORLD_RANK) nor a Slurm array "
        "(SLURM_ARRAY_TASK_ID) started this process: say --part I/N");
  }
  const std::size_t number = number_of(place) + 1 - number_of(first);
  return checked({number, number_of(count)}, place + " of " + count + " from " + first);
}

}  // namespace

measure::Part part_of(const std::string& text) {
  if (text == "auto") return part_of_launcher();
  const auto slash = text.find('/');
  if (slash == std::string::npos) return checked({0, 0}, text);
  return checked({number_of(text.substr(0, slash)), number_of(text.substr(slash + 1))}, text);
}

}  // namespace syncline::cli
