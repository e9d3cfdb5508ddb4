#include "core/calibrate/nccl_log.h"

#include <filesystem>
#include <map>

#include "core/calibrate/gzip.h"
#include "core/calibrate/nccl_log_parts.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/json/text.h"

namespace syncline::calibrate {

namespace {

// Sizes that stand in a table several times: whoever fits takes the median of their times.
void say_repeats(cost::MeasuredTable& table) {
  std::map<Bytes, int> times;
  for (const cost::MeasuredRow& row : table.rows) {
    if (row.size > 0) ++times[row.size];
  }
  std::erase_if(times, [](const auto& one) { return one.second < 2; });
  if (times.empty()) return;
  const auto& [size, count] = *times.begin();
  table.left_out.push_back(
      std::to_string(times.size()) + (times.size() == 1 ? " size stands" : " sizes stand") +
      " in the table of line " + std::to_string(table.line) + " more than once (" +
      std::to_string(size) + " bytes: " + std::to_string(count) +
      " times): the median of their times is used");
}

}  // namespace

std::vector<cost::MeasuredTable> read_nccl_log(const std::string& path) {
  return nccl_log_from_text(path, unpacked(path, read_text_file(path, "an nccl-tests log")));
}

std::vector<cost::MeasuredTable> nccl_log_from_text(const std::string& name,
                                                    std::string_view text) {
  std::string problem;
  std::vector<RawTable> raws;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    raws = nccl_json_tables(text, problem);
  } else {
    raws = nccl_text_tables(text);
    problem = "holds no table of nccl-tests";
  }
  std::vector<cost::MeasuredTable> tables;
  const std::string file_name = std::filesystem::path(name).filename().string();
  for (RawTable& raw : raws) {
    if (raw.table.rows.empty()) continue;
    raw.table.source = name;
    settle_shape(raw, file_name);
    if (!raw.context.devices.empty()) raw.table.device = raw.context.devices.front().name;
    say_repeats(raw.table);
    tables.push_back(std::move(raw.table));
  }
  if (tables.empty()) {
    throw InputError(name + ": " + problem +
                     "; looked for rows of size, count and type (\"1048576  262144  float ...\") "
                     "with time, algbw and busbw, as nccl-tests prints them, or its JSON (-J)");
  }
  return tables;
}

}  // namespace syncline::calibrate
