#include "core/job/chakra/chakra.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/calibrate/gzip.h"
#include "core/error.h"
#include "core/job/chakra/nodes.h"
#include "core/job/chakra/steps.h"
#include "core/json/text.h"

namespace syncline::job::chakra {
namespace {

std::vector<std::string> warnings_of(const Steps& steps) {
  std::vector<std::string> list;
  if (!steps.timed) {
    list.emplace_back(
        "no compute node has a duration: sizes of buckets are known, times are not; link the trace "
        "with the device's (chakra_trace_link), or import torch.profiler's own");
  }
  list.emplace_back(
      "a Chakra trace does not tell gradients: each bucket is one, so no other fusion can be "
      "judged; "
      "import torch.profiler's trace (record_shapes=True) of the same job for that");
  list.emplace_back(
      "formats are not told: sizes are taken as fp32, as fp16 where four bytes do not "
      "divide them");
  if (steps.timed && !steps.forward_known) {
    list.emplace_back("the forward pass is not told apart: it is in the wait for the first bucket");
  }
  if (steps.collectives_timed) {
    list.emplace_back(
        "collectives' durations are of one rank, its waiting for the others included");
  }
  if (steps.odd > 0) {
    list.push_back(std::to_string(steps.odd) +
                   " collectives are left out: of a kind that a plan does not hold, or without a "
                   "size in whole floats");
  }
  if (steps.point_to_point > 0) {
    list.push_back(std::to_string(steps.point_to_point) + " sends and receives are left out");
  }
  return list;
}

// NAME.3.et: 3. Otherwise what the caller counts.
int rank_of(const std::string& file, int otherwise) {
  std::string stem = std::filesystem::path(file).filename().string();
  for (const std::string_view ending : {".gz", ".et"}) {
    if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  }
  const std::size_t dot = stem.rfind('.');
  if (dot == std::string::npos) return otherwise;
  int rank = 0;
  const char* end = stem.data() + stem.size();
  const auto [stop, error] = std::from_chars(stem.data() + dot + 1, end, rank);
  return error == std::errc() && stop == end && rank >= 0 ? rank : otherwise;
}

bool alike(const Step& a, const Step& b) {
  return std::equal(a.exchanges.begin(), a.exchanges.end(), b.exchanges.begin(), b.exchanges.end(),
                    [](const Exchange& one, const Exchange& other) {
                      return one.kind == other.kind && one.bytes() == other.bytes();
                    });
}

// The least time of each collective over the ranks.
void join_times(std::vector<Rank>& ranks) {
  for (std::size_t s = 0; s < ranks.front().steps.size(); ++s) {
    for (std::size_t e = 0; e < ranks.front().steps[s].exchanges.size(); ++e) {
      Seconds least = ranks.front().steps[s].exchanges[e].duration;
      for (const Rank& rank : ranks) least = std::min(least, rank.steps[s].exchanges[e].duration);
      for (Rank& rank : ranks) rank.steps[s].exchanges[e].time = least;
    }
  }
}

}  // namespace

bool recognises(const Head& head) {
  if (head.directory || head.bytes.empty()) return false;
  if (head.bytes.front() == '{' || head.bytes.front() == '[') return false;
  return head.path.ends_with(".et") || head.path.ends_with(".et.gz") ||
         begins_like_trace(head.bytes);
}

Observed observed_from_bytes(const std::string& name, std::string_view bytes, int rank) {
  const Trace trace = trace_from_bytes(name, bytes);
  Steps steps = steps_of(name, trace);
  if (steps.list.empty() || steps.list.front().gradients.empty()) {
    throw InputError(name + ": a Chakra trace of " + std::to_string(trace.nodes.size()) +
                     " nodes without an all-reduce or reduce-scatter with its comm_size: nothing "
                     "in it synchronises gradients");
  }
  Observed observed;
  observed.file = name;
  observed.framework = "pytorch";
  observed.version = trace.version.empty() ? "Chakra" : "Chakra " + trace.version;
  observed.name = std::filesystem::path(name).filename().string();
  observed.name = observed.name.substr(0, observed.name.find('.'));
  observed.timed = steps.timed;
  observed.warnings = warnings_of(steps);
  observed.ranks.push_back({rank, std::move(steps.list)});
  return observed;
}

Observed read(const std::vector<std::string>& files) {
  Observed all;
  for (const std::string& file : files) {
    const std::string bytes = calibrate::unpacked(file, read_text_file(file, "a Chakra trace"));
    Observed one =
        observed_from_bytes(file, bytes, rank_of(file, static_cast<int>(all.ranks.size())));
    if (all.ranks.empty()) {
      all = std::move(one);
      continue;
    }
    const std::vector<Step>& steps = one.ranks.front().steps;
    const std::vector<Step>& first = all.ranks.front().steps;
    if (!std::equal(steps.begin(), steps.end(), first.begin(), first.end(), alike)) {
      throw InputError(file + ": its collectives are not those of " + files.front() +
                       ": not of one job");
    }
    all.ranks.push_back(std::move(one.ranks.front()));
  }
  all.world_size = static_cast<int>(all.ranks.size());
  join_times(all.ranks);
  return all;
}

}  // namespace syncline::job::chakra
