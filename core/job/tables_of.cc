#include "core/job/tables_of.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/calibrate/size_fit.h"
#include "core/statistics.h"

namespace syncline::job {
namespace {

// How a group of so many ranks lies on the job's nodes, as far as that is known.
struct Lie {
  int nodes = 0;
  int gpus_per_node = 0;
};

std::optional<Lie> lie_of(const Observed& observed, int ranks) {
  const int devices = observed.devices_a_node;
  if (devices <= 0 || ranks < 2) return std::nullopt;
  if (observed.world_size <= devices) return Lie{1, ranks};
  if (ranks != observed.world_size || ranks % devices != 0) return std::nullopt;
  return Lie{ranks / devices, devices};
}

std::optional<collective::CollectiveKind> kind_of(const std::string& name) {
  for (const auto kind : collective::kAllCollectiveKinds) {
    if (to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

// Kind and ranks of a table; its times by size.
using Times = std::map<std::pair<std::string, int>, std::map<Bytes, std::vector<Seconds>>>;

Times times_of(const Observed& observed) {
  Times times;
  for (const Step& step : observed.ranks.front().steps) {
    for (const Exchange& exchange : step.exchanges) {
      const int ranks = exchange.ranks > 0 ? exchange.ranks : observed.world_size;
      const bool complete = static_cast<std::size_t>(ranks) <= observed.ranks.size();
      if (!complete || exchange.time <= 0 || exchange.elements <= 0) continue;
      times[{exchange.kind, ranks}][exchange.bytes()].push_back(exchange.time);
    }
  }
  return times;
}

}  // namespace

std::vector<cost::MeasuredTable> tables_of(const Observed& observed) {
  if (observed.ranks.size() < 2) return {};
  std::vector<cost::MeasuredTable> tables;
  for (const auto& [shape, sizes] : times_of(observed)) {
    const auto& [name, ranks] = shape;
    const auto kind = kind_of(name);
    const auto lie = lie_of(observed, ranks);
    if (!kind || !lie) continue;
    cost::MeasuredTable& table = tables.emplace_back();
    table.source = observed.file;
    table.line = 1;
    table.test = name;
    table.kind = kind;
    table.ranks = ranks;
    table.nodes = lie->nodes;
    table.gpus_per_node = lie->gpus_per_node;
    table.nccl_version = observed.nccl_version;
    table.device = observed.device;
    for (const auto& [bytes, times] : sizes) {
      cost::MeasuredRow& row = table.rows.emplace_back();
      row.size = bytes;
      row.out_of_place = median(times);
      row.spread = calibrate::spread_of_median(times);
    }
  }
  return tables;
}

}  // namespace syncline::job
