#include "core/job/chakra/steps.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "core/job/chakra/walk.h"

namespace syncline::job::chakra {
namespace {

// CollectiveCommType of the schema; the others move no gradients.
std::string kind_of(std::int64_t type) {
  constexpr std::array<std::string_view, 9> kKinds = {
      "all_reduce", "reduce",         "all_gather",    "", "", "broadcast",
      "all_to_all", "reduce_scatter", "reduce_scatter"};
  if (type < 0 || type >= static_cast<std::int64_t>(kKinds.size())) return {};
  return std::string(kKinds[static_cast<std::size_t>(type)]);
}

bool carries_gradients(const std::string& kind) {
  return kind == "all_reduce" || kind == "reduce_scatter";
}

struct Interval {
  Seconds begin = 0;
  Seconds end = 0;
};

// Times at which something of a kind runs.
class Busy {
 public:
  explicit Busy(std::vector<Interval> intervals) {
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    for (const Interval& one : intervals) {
      if (list_.empty() || one.begin > list_.back().end) {
        list_.push_back(one);
      } else {
        list_.back().end = std::max(list_.back().end, one.end);
      }
    }
  }

  const std::vector<Interval>& list() const { return list_; }

  Seconds between(Seconds begin, Seconds end) const {
    Seconds sum = 0;
    for (auto one = from(begin); one != list_.end() && one->begin < end; ++one) {
      sum += std::max(0.0, std::min(end, one->end) - std::max(begin, one->begin));
    }
    return sum;
  }

  // When something begins that does so no earlier than `time`; `otherwise` where nothing does.
  Seconds next_begin(Seconds time, Seconds otherwise) const {
    const auto found =
        std::lower_bound(list_.begin(), list_.end(), time,
                         [](const Interval& one, Seconds at) { return one.begin < at; });
    return found == list_.end() ? otherwise : found->begin;
  }

  // While this stands still and the other runs.
  Seconds idle_beside(const Busy& other, Seconds begin, Seconds end) const {
    Seconds sum = 0;
    for (auto one = other.from(begin); one != other.list_.end() && one->begin < end; ++one) {
      const Seconds first = std::max(begin, one->begin);
      const Seconds last = std::min(end, one->end);
      if (last > first) sum += (last - first) - between(first, last);
    }
    return sum;
  }

 private:
  std::vector<Interval>::const_iterator from(Seconds time) const {
    return std::partition_point(list_.begin(), list_.end(),
                                [&](const Interval& one) { return one.end <= time; });
  }

  std::vector<Interval> list_;
};

bool is_compute(const Node& node) { return node.type == NodeType::kCompute && !node.host; }

bool same(const Node& a, const Node& b) {
  return a.name == b.name && a.type == b.type && a.duration == b.duration &&
         a.comm_type == b.comm_type && a.comm_size == b.comm_size;
}

// How often the list repeats itself, word by word: the prefix function of Knuth, Morris and Pratt.
std::size_t repetitions(const std::vector<Node>& nodes) {
  std::vector<std::size_t> border(nodes.size());
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    std::size_t k = border[i - 1];
    while (k > 0 && !same(nodes[i], nodes[k])) k = border[k - 1];
    border[i] = same(nodes[i], nodes[k]) ? k + 1 : 0;
  }
  const std::size_t period = nodes.size() - border.back();
  return nodes.size() % period == 0 ? nodes.size() / period : 1;
}

std::size_t profiler_steps(const std::vector<Node>& nodes) {
  return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.name.starts_with("ProfilerStep#");
  }));
}

// A trace in time.
class Timeline {
 public:
  Timeline(const std::string& name, const Trace& trace)
      : nodes_(trace.nodes),
        spans_(walk(name, trace.nodes)),
        compute_(busy([](const Node& node) { return is_compute(node); })),
        forward_(
            busy([](const Node& node) { return is_compute(node) && node.name.ends_with("FWD"); })),
        moving_(busy([](const Node& node) { return node.type == NodeType::kCollective; })) {}

  Steps steps() {
    Steps steps;
    steps.timed = !compute_.list().empty();
    steps.forward_known = !forward_.list().empty();
    steps.collectives_timed = !moving_.list().empty();
    std::vector<Exchange> exchanges = exchanges_of(steps);
    const std::size_t count = count_of(exchanges);
    const std::size_t each = exchanges.size() / count;
    Seconds begin = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto first = exchanges.begin() + static_cast<std::ptrdiff_t>(i * each);
      Step& step = steps.list.emplace_back();
      step.number = static_cast<int>(i + 1);
      step.exchanges.assign(first, first + static_cast<std::ptrdiff_t>(each));
      begin = fill(step, begin, i + 1 == count);
    }
    return steps;
  }

 private:
  template <typename Wanted>
  Busy busy(const Wanted& wanted) const {
    std::vector<Interval> intervals;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (wanted(nodes_[i]) && spans_[i].end > spans_[i].begin) {
        intervals.push_back({spans_[i].begin, spans_[i].end});
      }
    }
    return Busy(std::move(intervals));
  }

  // In the order in which they are ready.
  std::vector<Exchange> exchanges_of(Steps& steps) const {
    std::vector<std::pair<std::uint64_t, Exchange>> list;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      if (node.type == NodeType::kSend || node.type == NodeType::kReceive) ++steps.point_to_point;
      if (node.type != NodeType::kCollective) continue;
      Exchange exchange;
      exchange.kind = kind_of(node.comm_type);
      constexpr std::int64_t kMost = std::int64_t{1} << 40;
      if (exchange.kind.empty() || node.comm_size <= 0 || node.comm_size > kMost ||
          node.comm_size % 2 != 0) {
        ++steps.odd;
        continue;
      }
      exchange.dtype = node.comm_size % 4 == 0 ? DType::kFp32 : DType::kFp16;
      exchange.elements = node.comm_size / size_of(exchange.dtype);
      exchange.group = node.group;
      exchange.complete = spans_[i].ready;
      exchange.sent = spans_[i].begin;
      exchange.duration = exchange.time = node.duration;
      list.emplace_back(node.id, std::move(exchange));
    }
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.complete, a.first) < std::pair(b.second.complete, b.first);
    });
    std::vector<Exchange> exchanges;
    for (auto& [id, exchange] : list) exchanges.push_back(std::move(exchange));
    return exchanges;
  }

  // As many steps as the trace says or shows, if their collectives are the same.
  std::size_t count_of(const std::vector<Exchange>& exchanges) const {
    const std::size_t labels = profiler_steps(nodes_);
    const std::size_t count = labels > 1 ? labels : repetitions(nodes_);
    if (count < 2 || exchanges.size() % count != 0) return 1;
    const std::size_t each = exchanges.size() / count;
    for (std::size_t i = each; i < exchanges.size(); ++i) {
      const Exchange& before = exchanges[i - each];
      if (exchanges[i].kind != before.kind || exchanges[i].bytes() != before.bytes()) return 1;
    }
    return count;
  }

  // Gives when the next step begins: at the first work behind this one's last bucket.
  Seconds fill(Step& step, Seconds begin, bool last) const {
    Seconds ready = begin;
    for (Exchange& exchange : step.exchanges) {
      const Seconds end = exchange.sent + exchange.duration;
      exchange.exposed = exchange.duration - compute_.between(exchange.sent, end);
      if (carries_gradients(exchange.kind)) {
        const Seconds now = std::max(ready, exchange.complete);
        exchange.gradients = {static_cast<int>(step.gradients.size())};
        Gradient& gradient = step.gradients.emplace_back();
        gradient.name = "bucket " + std::to_string(step.gradients.size());
        gradient.elements = exchange.elements;
        gradient.dtype = exchange.dtype;
        const Seconds forward = forward_.between(ready, now);
        const Seconds idle = compute_.idle_beside(moving_, ready, now);
        gradient.wait = std::max(0.0, (now - ready) - idle - forward);
        step.forward += forward;
        step.backward += gradient.wait;
        ready = now;
      }
      exchange.complete -= begin;
      exchange.sent -= begin;
    }
    const Seconds stop = compute_.list().empty() ? ready : compute_.list().back().end;
    const Seconds end = last ? std::max(ready, stop) : compute_.next_begin(ready, ready);
    step.update = compute_.between(ready, end);
    step.exposed = compute_.idle_beside(moving_, begin, end);
    step.gpu = end - begin;
    step.host_gap =
        std::max(0.0, step.gpu - step.forward - step.backward - step.exposed - step.update);
    return end;
  }

  const std::vector<Node>& nodes_;
  std::vector<Span> spans_;
  Busy compute_;
  Busy forward_;
  Busy moving_;
};

}  // namespace

Steps steps_of(const std::string& name, const Trace& trace) {
  if (trace.nodes.empty()) return {};
  return Timeline(name, trace).steps();
}

}  // namespace syncline::job::chakra
