#include "core/plan/fetch_trace.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/index.h"
#include "core/plan/forward_pass.h"
#include "core/plan/fusion.h"

namespace syncline::plan {
namespace {

// A module that a pass enters.
struct Visit {
  std::vector<int> own;  // tensors, without those of its submodules
  Moment at;
};

// The begin or end of a module in a pass.
struct Step {
  std::size_t visit = 0;
  bool enters = false;
};

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == word.npos;
}

// Owns the sequence of modules that both passes enter and leave.
class Walk {
 public:
  explicit Walk(const Workload& workload) : workload_(workload) {
    for (const int t : registered_order(workload.tensors)) {
      if (!tensor(t).sparse) own_[layer(t)].push_back(t);
    }
    auto layers = forward_layers(workload);
    pass(layers, false);
    std::ranges::reverse(layers);
    const int last = last_gradient(workload);
    std::erase_if(layers, [&](const ForwardLayer& layer) { return layer.first > last; });
    pass(layers, true);
  }

  const std::vector<Visit>& visits() const { return visits_; }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  const Tensor& tensor(int t) const { return workload_.tensors[index(t)]; }
  std::string layer(int t) const { return layer_of(tensor(t).name, Fusion::LayerKey::kLastDot); }

  // Adds the visits of one pass: before each layer it leaves the modules that do not contain the
  // layer and enters those that do.
  void pass(const std::vector<ForwardLayer>& layers, bool backward) {
    if (layers.empty()) return;
    const auto moment = [&](const ForwardLayer& layer) {
      return Moment{backward, backward ? layer.first : layer.last};
    };
    enter("", moment(layers.front()));
    for (const ForwardLayer& one : layers) {
      const std::string name = layer(one.first);
      const auto holds = [&](const std::string& module) {
        return module.empty() || module == name || name.starts_with(module + ".");
      };
      while (!holds(open_.back().first)) leave();
      for (const std::string& module : modules_of(name)) {
        if (module.size() > open_.back().first.size()) enter(module, moment(one));
      }
    }
    while (!open_.empty()) leave();
  }

  // Returns the modules that contain a layer, outer ones first, then the layer itself.
  std::vector<std::string> modules_of(const std::string& name) const {
    std::vector<std::string> modules;
    for (std::size_t end = name.find('.'); end != name.npos; end = name.find('.', end + 1)) {
      const std::string module = name.substr(0, end);
      const std::string_view next = std::string_view(name).substr(end + 1);
      const bool list = is_number(next.substr(0, next.find('.')));
      if (!list || own_.contains(module)) modules.push_back(module);
    }
    modules.push_back(name);
    return modules;
  }

  void enter(const std::string& module, const Moment& at) {
    const auto own = own_.find(module);
    open_.emplace_back(module, visits_.size());
    steps_.push_back({visits_.size(), true});
    visits_.push_back({own == own_.end() ? std::vector<int>{} : own->second, at});
  }

  void leave() {
    steps_.push_back({open_.back().second, false});
    open_.pop_back();
  }

  const Workload& workload_;
  std::map<std::string, std::vector<int>> own_;  // tensors by module, in order of registration
  std::vector<Visit> visits_;
  std::vector<Step> steps_;
  std::vector<std::pair<std::string, std::size_t>> open_;  // modules, outer ones first, and visits
};

// Tracks the parameters in place during the passes, and gathers others.
class Fetching {
 public:
  Fetching(const Workload& workload, const Strategy& strategy)
      : workload_(workload),
        rule_(strategy.traits.fetches),
        walk_(workload),
        stays_(workload.tensors.size(), 0),
        in_place_(stays_),
        reached_(stays_.size(), -1),
        group_(stays_.size(), kNone),
        uses_(stays_.size()) {
    for (const auto& group : strategy.gather_groups) {
      for (const int t : group) stays_[index(t)] = in_place_[index(t)] = 1;
    }
    std::int64_t sum = 0;
    const auto& visits = walk_.visits();
    for (std::size_t v = 0; v < visits.size(); ++v) {
      ahead_of_.push_back(sum);
      for (const int t : visits[v].own) {
        queue_.emplace_back(t, v);
        uses_[index(t)].push_back(v);
        sum += elements(t);
      }
    }
  }

  FetchTrace run() {
    for (const auto& [visit, enters] : walk_.steps()) {
      enters ? enter(visit) : leave(walk_.visits()[visit]);
    }
    return std::move(trace_);
  }

 private:
  static constexpr auto kNone = std::numeric_limits<std::size_t>::max();

  std::int64_t elements(int t) const { return workload_.tensors[index(t)].elements; }

  // Fetches the module's missing parameters, then those of the next modules.
  void enter(std::size_t v) {
    const Visit& visit = walk_.visits()[v];
    std::vector<int> lacking;
    std::ranges::copy_if(visit.own, std::back_inserter(lacking),
                         [&](int t) { return in_place_[index(t)] == 0; });
    gather(std::move(lacking), visit.at);
    for (const int t : visit.own) {
      if (group_[index(t)] == kNone) continue;
      FetchGroup& group = trace_.groups[std::exchange(group_[index(t)], kNone)];
      for (const int other : group.tensors) group_[index(other)] = kNone;
      group.needed = visit.at;
    }
    const auto own = static_cast<std::int64_t>(v);
    const auto late =
        std::ranges::count_if(visit.own, [&](int t) { return reached_[index(t)] < own; });
    for (std::ptrdiff_t i = 0; i < late && next_ < queue_.size(); ++i) take();
    gather(ahead(), visit.at);
    ++entered_;
  }

  // Takes the queue's next parameter; its visit uses it.
  int take() {
    const auto& [t, visit] = queue_[next_++];
    reached_[index(t)] = std::max(reached_[index(t)], static_cast<std::int64_t>(visit));
    return t;
  }

  // Returns the parameters to gather ahead now, within the limits of the rule.
  std::vector<int> ahead() {
    std::vector<int> list;
    const std::int64_t room = std::min(rule_.ahead, rule_.live - live_);
    std::int64_t asked = 0;
    while (asked < room && next_ < queue_.size()) {
      const int t = take();
      if (in_place_[index(t)] != 0 || std::ranges::find(list, t) != list.end()) continue;
      list.push_back(t);
      asked += elements(t);
    }
    return list;
  }

  void gather(std::vector<int> tensors, const Moment& at) {
    if (tensors.empty()) return;
    std::ranges::sort(tensors);
    for (const int t : tensors) {
      in_place_[index(t)] = 1;
      group_[index(t)] = trace_.groups.size();
      live_ += elements(t);
    }
    trace_.groups.push_back({std::move(tensors), at, at});
    if (live_ <= most_) return;
    most_ = live_;
    trace_.most.clear();
    for (std::size_t t = 0; t < in_place_.size(); ++t) {
      if (in_place_[t] != 0 && stays_[t] == 0) trace_.most.push_back(static_cast<int>(t));
    }
  }

  // Releases the module's parameters that no later module needs soon.
  void leave(const Visit& visit) {
    for (const int t : visit.own) {
      const std::size_t place = index(t);
      const bool passed_over = reached_[place] > static_cast<std::int64_t>(entered_);
      if (stays_[place] != 0 || in_place_[place] == 0 || passed_over || used_soon(place)) continue;
      in_place_[place] = 0;
      live_ -= elements(t);
    }
  }

  bool used_soon(std::size_t t) const {
    const auto next = std::ranges::lower_bound(uses_[t], entered_);
    return next != uses_[t].end() && ahead_of_[*next] - ahead_of_[entered_] < rule_.reuse;
  }

  const Workload& workload_;
  Fetches rule_;
  Walk walk_;
  std::vector<char> stays_, in_place_;              // by tensor
  std::vector<std::int64_t> reached_;               // by tensor: the last visit taken for it
  std::vector<std::size_t> group_;                  // by tensor: a group not needed so far
  std::vector<std::vector<std::size_t>> uses_;      // by tensor: visits
  std::vector<std::int64_t> ahead_of_;              // by visit: elements of earlier visits
  std::vector<std::pair<int, std::size_t>> queue_;  // tensors, and the visits that need them
  std::size_t next_ = 0;                            // of the queue
  std::size_t entered_ = 0;                         // visits
  std::int64_t live_ = 0, most_ = 0;                // elements
  FetchTrace trace_;
};

}  // namespace

FetchTrace fetch_trace(const Workload& workload, const Strategy& strategy) {
  return Fetching(workload, strategy).run();
}

FetchesOfPass fetches_of_pass(const Communication& communication, std::size_t tensors,
                              bool backward, bool first_micro_batch) {
  FetchesOfPass pass{std::vector<std::vector<std::size_t>>(tensors),
                     std::vector<std::vector<std::size_t>>(tensors)};
  for (std::size_t f = 0; f < communication.fetches.size(); ++f) {
    const Fetch& fetch = communication.fetches[f];
    const auto other = first_micro_batch ? Fetch::Turn::kLater : Fetch::Turn::kFirst;
    if (fetch.turn == other) continue;
    if (fetch.asked.backward == backward) pass.asked[index(fetch.asked.tensor)].push_back(f);
    if (fetch.needed.backward == backward) pass.needed[index(fetch.needed.tensor)].push_back(f);
  }
  return pass;
}

}  // namespace syncline::plan
