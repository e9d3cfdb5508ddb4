#include "core/job/kineto/format.h"

#include "core/job/kineto/join.h"

namespace syncline::job::kineto {
namespace {

// The events may begin far behind the head: process groups of large jobs come before them.
bool recognises(const Head& head) {
  const auto has = [&](std::string_view key) { return head.bytes.find(key) != std::string::npos; };
  const std::size_t begin = head.bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return false;
  if (head.bytes[begin] == '[') return has("\"ph\"");
  return head.bytes[begin] == '{' &&
         (has("\"traceEvents\"") || has("\"distributedInfo\"") || has("\"deviceProperties\""));
}

Observed read(const std::vector<std::string>& files) {
  std::vector<RankRead> ranks;
  ranks.reserve(files.size());
  for (const std::string& file : files) ranks.push_back(read_rank(file));
  return join(std::move(ranks));
}

}  // namespace

const Format kFormat = {
    "kineto", "kineto: a torch.profiler trace (Kineto JSON, packed or not), one file a rank",
    recognises, read};

}  // namespace syncline::job::kineto
