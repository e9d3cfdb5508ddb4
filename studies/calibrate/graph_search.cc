#include "studies/calibrate/scale_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace syncline::calibrate {
namespace {

// Returns minus the logarithm of a graph's prior likelihood.
double against(const cost::GraphGuess& graph, BytesPerSecond bus, bool fast) {
  // A tree faster than the ring is rare on such nodes: it must explain the rows clearly better.
  constexpr double kFastTree = 6.0;
  double cost = graph.tree_intra > graph.ring_intra && !fast ? kFastTree : 0;
  // NCCL's search adds channels until the ports are used. It knows a port's rated bandwidth, not
  // the lower one of TCP or a poor plug-in.
  const double rated = std::log(graph.channels * graph.ring_inter / bus);
  const double spread = rated < 0 ? 0.5 : 2.0;
  cost += 0.5 * rated * rated / (spread * spread);
  return cost;
}

// Rates of one channel, in GB/s.
struct Rates {
  double intra = 0;
  double inter = 0;
  double tree = 0;  // inside a node
};

// Returns the rates of NCCL's search. Inside a node a tree is as fast as the ring, or has one of
// the two usual rates above it.
std::vector<Rates> rates_tried() {
  const std::pair<double, double> rings[] = {{40, 40}, {24, 24}, {20, 20},  {40, 20},
                                             {24, 12}, {20, 12}, {12, 12},  {12, 6},
                                             {6, 6},   {3, 3},   {1.2, 1.2}};
  std::vector<Rates> rates;
  for (const auto& [intra, inter] : rings) {
    for (const double tree : std::set<double>{intra, 20, 40}) {
      if (tree >= intra) rates.push_back({intra, inter, tree});
    }
  }
  return rates;
}

// Combines each value of an axis with each graph; the last axis varies fastest.
template <typename Value, typename Set>
void vary(std::vector<cost::GraphGuess>& graphs, const std::vector<Value>& values, Set set) {
  std::vector<cost::GraphGuess> varied;
  for (const auto& graph : graphs) {
    for (const auto& value : values) set(varied.emplace_back(graph), value);
  }
  graphs = std::move(varied);
}

// Returns the candidate graphs: every combination of channels, rates and other properties that a
// log does not show.
std::vector<cost::GraphGuess> graphs_tried() {
  constexpr double kGB = kGigabytePerSecond;
  std::vector<cost::GraphGuess> graphs(1);
  vary(graphs, std::vector<int>{0, 1},
       [](cost::GraphGuess& graph, int amd) { graph.amd = amd != 0; });
  vary(graphs, std::vector<int>{1, 2, 4, 6, 8, 12},
       [](cost::GraphGuess& graph, int channels) { graph.channels = channels; });
  vary(graphs, rates_tried(), [](cost::GraphGuess& graph, const Rates& rates) {
    graph.ring_intra = rates.intra * kGB;
    graph.ring_inter = rates.inter * kGB;
    graph.tree_intra = rates.tree * kGB;
    graph.tree_inter = std::min(rates.tree, rates.inter) * kGB;
  });
  vary(graphs, std::vector<int>{1, 0},
       [](cost::GraphGuess& graph, int plain) { graph.plain_tree = plain != 0; });
  vary(graphs, std::vector<int>{0, 1},
       [](cost::GraphGuess& graph, int on) { graph.ll128 = on != 0; });
  return graphs;
}

class GraphSearch {
 public:
  GraphSearch(const std::vector<cost::PathRow>& rows, BytesPerSecond bus, bool fast,
              double inside_scale)
      : rows_(rows), bus_(bus), fast_(fast), inside_scale_(inside_scale) {}

  // Returns the best fit. Of graphs under which all rows take the same paths, only the likeliest
  // one counts. Each other graph is fitted until its cost exceeds the best so far.
  cost::ScaleCostModel best() {
    auto graphs = graphs_tried();
    std::stable_sort(graphs.begin(), graphs.end(), [this](const auto& a, const auto& b) {
      return against(a, bus_, fast_) < against(b, bus_, fast_);
    });
    cost::ScaleCostModel best;
    double least = std::numeric_limits<double>::infinity();
    std::set<std::vector<cost::StepPath>> seen;
    for (const cost::GraphGuess& graph : graphs) {
      if (!best.steps.empty() && against(graph, bus_, fast_) + kPath >= least) break;
      auto paths = chosen(graph);
      if (!seen.insert(paths).second) continue;
      auto [found, cost] = fit(graph, paths, least);
      if (!best.steps.empty() && cost >= least) continue;
      best = std::move(found);
      least = cost;
    }
    return best;
  }

 private:
  static constexpr double kPath = 1.0;  // gain in cost that justifies one more path
  using Rows = std::vector<bool>;       // per row: true if it belongs
  using Fit = std::pair<cost::StepCostModel, double>;

  // Returns the path of every row.
  std::vector<cost::StepPath> chosen(const cost::GraphGuess& graph) const {
    std::vector<cost::StepPath> paths;
    std::size_t table = rows_.size();
    std::optional<cost::PathChoice> choice;
    for (const cost::PathRow& row : rows_) {
      if (row.table != table) {
        choice.emplace(graph, row.kind, row.nodes, row.gpus_per_node, row.forced);
        table = row.table;
      }
      paths.push_back((*choice)(row.bytes));
    }
    return paths;
  }

  // Fits one path's rows. Fits are cached: graphs often agree about a path.
  Fit fit_path(cost::StepPath path, const Rows& mine, const cost::StepPrior& prior) {
    const auto key =
        std::make_tuple(path, mine, std::lround(std::log(prior.latency_scale) * 100),
                        std::lround(std::log(prior.bandwidth) * 50), prior.latency_spread);
    const auto [known, fresh] = fits_.try_emplace(key);
    if (fresh) {
      std::vector<cost::PathRow> rows;
      for (std::size_t i = 0; i < mine.size(); ++i) {
        if (mine[i]) rows.push_back(rows_[i]);
      }
      known->second = cost::fit_step_cost_model(path, rows, prior);
    }
    return known->second;
  }

  // Returns the fabric's rate: that of the fastest row, in bytes as its path counts them.
  double rate_of(const std::vector<cost::StepPath>& paths) const {
    double rate = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const cost::PathRow& row = rows_[i];
      const double times = paths[i].tree
                               ? (row.nodes <= 2 ? 1 : 2)
                               : cost::bus_factor(row.kind, row.nodes * row.gpus_per_node);
      rate = std::max(rate, times * row.bytes / row.time / row.share);
    }
    // Steps of two percent, so that fits can be cached.
    return std::exp(std::round(std::log(rate) * 50) / 50);
  }

  // Returns the fabric's factor on NCCL's constants, from the LL paths, which are nearly all
  // latency. Each is fitted by itself with a loose prior.
  double latency_scale(const std::map<cost::StepPath, Rows>& rows_of, double rate) {
    const cost::StepPrior loose{1, 1.5, rate, inside_scale_};
    double shift = 0;
    int shifts = 0;
    for (const auto& [path, mine] : rows_of) {
      if (path.protocol == collective::NcclProtocol::kSimple) continue;
      const cost::StepCostModel model = fit_path(path, mine, loose).first;
      shift += std::log(model.latency / cost::prior_cost_model(path, loose).latency);
      ++shifts;
    }
    return std::exp(shifts > 0 ? std::round(shift / shifts * 20) / 20 : 0);
  }

  // Fits all paths of a graph with one prior for the fabric. Stops once the cost reaches `bound`:
  // such a graph cannot win.
  std::pair<cost::ScaleCostModel, double> fit(const cost::GraphGuess& graph,
                                              const std::vector<cost::StepPath>& paths,
                                              double bound) {
    std::map<cost::StepPath, Rows> rows_of;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      auto& mine = rows_of[paths[i]];
      mine.resize(paths.size());
      mine[i] = true;
    }
    double cost = against(graph, bus_, fast_);
    double floor = cost;  // of perfect fits
    for (std::size_t i = 0; i < rows_of.size(); ++i) floor += kPath;
    if (floor >= bound) return {{}, floor};
    const double rate = rate_of(paths);
    const cost::StepPrior prior{latency_scale(rows_of, rate), 0.7, rate, inside_scale_};
    cost::ScaleCostModel found;
    found.graph = graph;
    found.prior = prior;
    for (const auto& [path, mine] : rows_of) {
      const auto [model, own] = fit_path(path, mine, prior);
      found.steps.push_back(model);
      cost += own + kPath;
      if (cost >= bound) break;
    }
    return {std::move(found), cost};
  }

  const std::vector<cost::PathRow>& rows_;
  BytesPerSecond bus_;
  bool fast_;
  double inside_scale_;
  std::map<std::tuple<cost::StepPath, Rows, long, long, double>, Fit> fits_;
};

}  // namespace

cost::ScaleCostModel find_graph(const std::vector<cost::PathRow>& rows, BytesPerSecond bus,
                                bool fast, double inside_scale) {
  return GraphSearch(rows, bus, fast, inside_scale).best();
}

}  // namespace syncline::calibrate
