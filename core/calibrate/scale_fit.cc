#include "core/calibrate/scale_fit.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/cost/least_squares.h"
#include "core/error.h"
#include "core/statistics.h"

namespace syncline {
namespace {

// One row of a table between nodes, with the share of the rate its GPUs a node have.
struct Sample {
  StepRow row;
  ForcedAlgorithm forced = ForcedAlgorithm::kNone;
  std::size_t table = 0;
};

// What speaks against a graph before any row is looked at, as minus the logarithm of a likelihood.
// `bus` is the best rate that was measured, in bytes that a rank of a ring sends times the GPUs of
// a node; `fast` where it is more than the port of 200 Gbit/s that a GPU of the generations with
// one speed for all its graphs has.
double against(const GraphGuess& graph, BytesPerSecond bus, bool fast) {
  // A tree faster than the ring is rare on such nodes: it must explain the rows clearly better.
  constexpr double kFastTree = 6.0;
  double cost = graph.tree_intra > graph.ring_intra && !fast ? kFastTree : 0;
  // NCCL's search takes channels until the ports are used, and knows what a port is rated, not what
  // TCP or a poor plug-in leaves of it.
  const double rated = std::log(graph.channels * graph.ring_inter / bus);
  const double spread = rated < 0 ? 0.5 : 2.0;
  cost += 0.5 * rated * rated / (spread * spread);
  return cost;
}

// The graphs that are tried: channels and rates of NCCL's own search, and what else a log does not
// show.
std::vector<GraphGuess> graphs() {
  constexpr double kGB = kGigabytePerSecond;
  const std::vector<std::pair<double, double>> rings = {{40, 40}, {24, 24}, {20, 20},  {40, 20},
                                                        {24, 12}, {20, 12}, {12, 12},  {12, 6},
                                                        {6, 6},   {3, 3},   {1.2, 1.2}};
  std::vector<GraphGuess> list;
  for (const bool amd : {false, true}) {
    for (const int channels : {1, 2, 4, 6, 8, 12}) {
      for (const auto& [intra, inter] : rings) {
        for (const double tree : std::set<double>{intra, 20, 40}) {
          if (tree < intra) continue;
          for (const bool plain : {true, false}) {
            for (const bool ll128 : {false, true}) {
              list.push_back({amd, channels, intra * kGB, inter * kGB, tree * kGB,
                              std::min(tree, inter) * kGB, plain, ll128});
            }
          }
        }
      }
    }
  }
  return list;
}

class Search {
 public:
  // `bus` and `fast` as in against().
  Search(std::vector<Sample> samples, BytesPerSecond bus, bool fast)
      : samples_(std::move(samples)), bus_(bus), fast_(fast) {}

  struct Found {
    GraphGuess graph;
    StepPrior prior;
    std::vector<StepLaw> steps;
    double cost = 0;
  };

  Found best() {
    Found best;
    bool any = false;
    std::set<std::vector<StepPath>> seen;
    // Rows of few counts leave many graphs alike: of those the likeliest beforehand stands.
    auto list = graphs();
    std::stable_sort(list.begin(), list.end(), [this](const auto& a, const auto& b) {
      return against(a, bus_, fast_) < against(b, bus_, fast_);
    });
    for (const GraphGuess& graph : list) {
      auto paths = chosen(graph);
      if (!seen.insert(paths).second) continue;
      constexpr double kNone = std::numeric_limits<double>::infinity();
      Found found = fit(graph, paths, any ? best.cost : kNone);
      if (any && found.cost >= best.cost) continue;
      best = std::move(found);
      any = true;
    }
    return best;
  }

 private:
  std::vector<StepPath> chosen(const GraphGuess& graph) const {
    std::vector<StepPath> paths;
    std::size_t table = samples_.size();
    std::optional<PathChoice> choice;
    for (const Sample& sample : samples_) {
      const StepRow& row = sample.row;
      if (sample.table != table) {
        choice.emplace(graph, row.kind, row.nodes, row.gpus_per_node, sample.forced);
        table = sample.table;
      }
      paths.push_back((*choice)(row.bytes));
    }
    return paths;
  }

  // The rows of one path and their fit; many graphs agree about a path, so fits are remembered.
  StepFit fit_path(StepPath path, const std::vector<bool>& mine, const StepPrior& prior) {
    const auto key =
        std::make_tuple(path, mine, std::lround(std::log(prior.latency_scale) * 100),
                        std::lround(std::log(prior.bandwidth) * 50), prior.latency_spread);
    const auto [known, fresh] = fits_.try_emplace(key);
    if (fresh) {
      std::vector<StepRow> rows;
      for (std::size_t i = 0; i < mine.size(); ++i) {
        if (mine[i]) rows.push_back(samples_[i].row);
      }
      known->second = fit_step_law(path, rows, prior);
    }
    return known->second;
  }

  // Stops where the cost reaches `bound`: such a graph has lost already.
  Found fit(const GraphGuess& graph, const std::vector<StepPath>& paths, double bound) {
    // The fabric's rate: the fastest row, as its path counts bytes.
    double rate = 0;
    std::map<StepPath, std::vector<bool>> groups;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const StepRow& row = samples_[i].row;
      const RingSteps steps = ring_steps(row.kind, row.nodes, row.gpus_per_node);
      const double times =
          paths[i].tree ? (row.nodes <= 2 ? 1 : 2) : steps.all / (row.nodes * row.gpus_per_node);
      rate = std::max(rate, times * row.bytes / row.time / row.share);
      auto& mine = groups[paths[i]];
      mine.resize(paths.size());
      mine[i] = true;
    }
    // Steps of two per cent, so that fits can be remembered.
    rate = std::exp(std::round(std::log(rate) * 50) / 50);

    // First each path by itself, then held together by what the LL paths say of the fabric.
    const StepPrior loose{1, 1.5, rate};
    double shift = 0;
    int shifts = 0;
    for (const auto& [path, mine] : groups) {
      if (path.protocol == NcclProtocol::kSimple) continue;
      const StepLaw law = fit_path(path, mine, loose).law;
      shift += std::log(law.latency / nccl_step_latency(path, true));
      ++shifts;
    }
    const double scale = shifts > 0 ? std::round(shift / shifts * 20) / 20 : 0;
    Found found{graph, {std::exp(scale), 0.7, rate}, {}, against(graph, bus_, fast_)};
    constexpr double kPath = 1.0;  // what one more path must explain
    for (const auto& [path, mine] : groups) {
      const StepFit fit = fit_path(path, mine, found.prior);
      found.steps.push_back(fit.law);
      found.cost += fit.cost + kPath;
      if (found.cost >= bound) break;
    }
    return found;
  }

  using Key = std::tuple<StepPath, std::vector<bool>, long, long, double>;
  std::vector<Sample> samples_;
  BytesPerSecond bus_;
  bool fast_;
  std::map<Key, StepFit> fits_;
};

// At most some sixty points, evenly spread by their logarithms.
std::vector<MeasuredPoint> thinned(const std::vector<MeasuredPoint>& points) {
  constexpr double kMost = 64;
  if (static_cast<double>(points.size()) <= kMost) return points;
  const double first = std::log(static_cast<double>(points.front().size));
  const double last = std::log(static_cast<double>(points.back().size));
  std::vector<MeasuredPoint> kept;
  double bin = -1;
  for (const auto& point : points) {
    const double at = (std::log(static_cast<double>(point.size)) - first) / (last - first) * kMost;
    if (std::floor(at) == bin) continue;
    bin = std::floor(at);
    kept.push_back(point);
  }
  return kept;
}

double bus_rate(const TableLaw& table, const std::vector<MeasuredPoint>& points) {
  const double ranks = static_cast<double>(table.nodes) * table.gpus_per_node;
  const double times = ring_steps(table.kind, table.nodes, table.gpus_per_node).all / ranks;
  double rate = 0;
  for (const auto& point : points) {
    rate = std::max(rate, times * static_cast<double>(point.size) / point.time);
  }
  return rate;
}

bool scales(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter;
}

ScaleLaw fit_scale(const std::vector<CalibratedTable>& tables, const MeasuredLaw& law) {
  ScaleLaw scale;
  std::map<int, double> rates;
  double ring_inside = 0;
  double any_inside = 0;
  const bool only_trees = std::none_of(law.tables.begin(), law.tables.end(), [](const auto& table) {
    return scales(table.kind) && table.nodes > 1 && table.forced != ForcedAlgorithm::kTree;
  });
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const TableLaw& table = law.tables[i];
    if (!scales(table.kind)) continue;
    // A forced tree does not show what its network carries, unless nothing else does.
    if (table.forced == ForcedAlgorithm::kTree && !only_trees) continue;
    const double rate = bus_rate(table, tables[i].fit.points);
    if (table.nodes > 1) {
      rates[table.gpus_per_node] = std::max(rates[table.gpus_per_node], rate);
    } else {
      // An all-reduce inside a node may be done by the switch (NVLS), the other two are rings.
      if (table.kind != CollectiveKind::kAllReduce) ring_inside = std::max(ring_inside, rate);
      any_inside = std::max(any_inside, rate);
    }
  }
  for (const auto& [gpus, rate] : rates) scale.rates.push_back({gpus, rate});
  scale.inside = ring_inside > 0 ? ring_inside : any_inside;

  std::vector<Sample> samples;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const TableLaw& table = law.tables[i];
    if (table.nodes == 1 || !scales(table.kind)) continue;
    for (const auto& point : thinned(tables[i].fit.points)) {
      samples.push_back({{table.kind, static_cast<double>(point.size), table.nodes,
                          table.gpus_per_node, rate_share(scale, table.gpus_per_node), point.time},
                         table.forced,
                         i});
    }
  }
  constexpr BytesPerSecond kPort = 25e9;
  bool fast = false;
  double bus = 0;
  for (const auto& [gpus, rate] : rates) {
    fast = fast || rate > kPort * gpus;
    bus = std::max(bus, rate);
  }
  const auto found = Search(samples, bus, fast).best();
  scale.graph = found.graph;
  scale.prior = found.prior;
  scale.steps = found.steps;

  std::vector<double> errors;
  constexpr double kLarge = 65536;
  for (const Sample& sample : samples) {
    const StepRow& row = sample.row;
    if (row.bytes < kLarge) continue;
    const StepPath path =
        PathChoice(scale.graph, row.kind, row.nodes, row.gpus_per_node, sample.forced)(row.bytes);
    const double time = step_time(step_law_of(scale, path), row.kind, row.bytes, row.nodes,
                                  row.gpus_per_node, row.share);
    errors.push_back(std::abs(time / row.time - 1));
  }
  if (!errors.empty()) scale.in_sample = middle_of(std::move(errors));
  return scale;
}

// What small payloads cost inside a node, by the steps of a ring.
NodeLaw fit_node(const MeasuredLaw& law) {
  constexpr double kSmall = 4096;
  constexpr double kNoise = 0.08;
  const StepPath path{false, NcclProtocol::kLl};
  const std::array<double, 2> centre = {std::log(nccl_base_latency(path)),
                                        std::log(nccl_step_latency(path, false))};
  const std::array<double, 2> spread = {0.7, 1.5};
  std::vector<std::pair<double, double>> rows;  // steps, time
  for (const TableLaw& table : law.tables) {
    if (table.nodes != 1 || table.min_bytes > kSmall || !scales(table.kind)) continue;
    if (table.forced == ForcedAlgorithm::kTree) continue;
    rows.emplace_back(ring_steps(table.kind, 1, table.gpus_per_node).all,
                      size_time(table.law, table.min_bytes));
  }
  const auto residuals = [&](const std::array<double, 2>& p, double* out) {
    for (const auto& [steps, time] : rows) {
      *out++ = damped(std::log((std::exp(p[0]) + std::exp(p[1]) * steps) / time) / kNoise);
    }
    for (std::size_t i = 0; i < 2; ++i) *out++ = (p[i] - centre[i]) / spread[i];
  };
  const auto [found, squares] = least_squares<2>(residuals, rows.size() + 2, centre);
  return {std::exp(found[0]), std::exp(found[1])};
}

std::vector<MeasuredPoint> joined(const std::vector<MeasuredPoint>& a,
                                  const std::vector<MeasuredPoint>& b) {
  std::map<Bytes, std::vector<double>> times;
  for (const auto* list : {&a, &b}) {
    for (const auto& point : *list) times[point.size].push_back(point.time);
  }
  std::vector<MeasuredPoint> points;
  for (const auto& [size, list] : times) {
    points.push_back({size, list.size() == 1 ? list[0] : (list[0] + list[1]) / 2});
  }
  return points;
}

}  // namespace

Calibrated calibrate(const std::vector<MeasuredTable>& tables) {
  Calibrated result;
  for (const MeasuredTable& measured : tables) {
    assert(measured.kind && measured.nodes > 0 && measured.gpus_per_node > 0);
    SizeFit points = points_of(measured);
    if (points.points.empty()) {
      throw InputError(measured.source + ": line " + std::to_string(measured.line) +
                       ": the table has no row that could be used: every size is 0, has no time " +
                       "or a wrong result");
    }
    const auto same = std::find_if(result.tables.begin(), result.tables.end(), [&](auto& other) {
      return other.measured.kind == measured.kind && other.measured.nodes == measured.nodes &&
             other.measured.gpus_per_node == measured.gpus_per_node &&
             other.measured.forced == measured.forced;
    });
    if (same == result.tables.end()) {
      result.tables.push_back({measured, std::move(points)});
    } else {
      same->fit.points = joined(same->fit.points, points.points);
      same->fit.outliers.insert(same->fit.outliers.end(), points.outliers.begin(),
                                points.outliers.end());
      same->measured.source += ", " + measured.source;
    }
  }
  bool between = false;
  for (CalibratedTable& table : result.tables) {
    table.fit = fit_sizes(std::move(table.fit));
    const SizeFit& fit = table.fit;
    TableLaw law;
    law.kind = *table.measured.kind;
    law.nodes = table.measured.nodes;
    law.gpus_per_node = table.measured.gpus_per_node;
    law.forced = table.measured.forced;
    law.law = fit.law;
    law.min_bytes = static_cast<double>(fit.points.front().size);
    law.max_bytes = static_cast<double>(fit.points.back().size);
    law.rows = static_cast<int>(fit.points.size());
    law.in_sample = fit.in_sample;
    law.left_out = fit.left_out;
    law.clean = is_clean(table.measured);
    law.source = table.measured.source;
    for (const auto& point : fit.outliers) law.outliers.push_back(point.size);
    result.law.tables.push_back(law);
    between = between || (law.nodes > 1 && scales(law.kind));
  }
  result.law.node = fit_node(result.law);
  if (between) result.law.scale = fit_scale(result.tables, result.law);
  return result;
}

}  // namespace syncline
