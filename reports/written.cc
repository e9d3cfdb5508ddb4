#include "reports/written.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace syncline::reports {

std::string nearest_text(const Strategy& strategy, const std::string& dialect,
                         const dialect::Written& written) {
  return "strategy '" + strategy.name + "' cannot be expressed in " + dialect +
         ": the nearest configuration is " + written.config.dump() + ", but " + written.difference;
}

std::vector<std::string> notes_on(const Json& config) {
  std::vector<std::string> notes;
  if (config.contains("bucket_cap_mb_list")) {
    notes.emplace_back(
        "bucket_cap_mb_list is torch 2.12's; --python FILE writes what does the same in any from "
        "1.13 on");
  }
  if (config.contains("_DEFAULT_FIRST_BUCKET_BYTES")) {
    notes.emplace_back(
        "_DEFAULT_FIRST_BUCKET_BYTES is no argument: set torch.distributed's variable of that name "
        "ahead of DistributedDataParallel");
  }
  return notes;
}

std::vector<std::string> notes_on(const dialect::Written& written) {
  std::vector<std::string> notes;
  if (!written.setting.empty()) {
    notes.push_back("run it with '" + written.setting + "' (NCCL 2.24 or later)");
  }
  for (auto& note : notes_on(written.config)) notes.push_back(std::move(note));
  if (!written.algorithm.empty()) {
    notes.push_back(
        "a framework's configuration does not say how collectives move their data; to price it "
        "here, write \"algorithm\": \"" +
        written.algorithm + "\" beside the dialect");
  }
  return notes;
}

}  // namespace syncline::reports
