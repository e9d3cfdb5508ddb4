#include "imports/kineto/groups.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

#include "core/base/error.h"
#include "core/base/index.h"

namespace syncline::job::kineto {
namespace {

std::string group_words(const RankGroup& group) {
  const std::string& words = group.description.empty() ? group.name : group.description;
  return "the group '" + words + "'";
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 6;
  const std::size_t shown = std::min(ranks.size(), kShown);
  const std::vector<int> first(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown));
  return list_numbers(first) + (shown < ranks.size() ? ", ..." : "");
}

[[noreturn]] void refuse_group(const Trace& trace, const std::string& what) {
  throw InputError(trace.path + ": " + what);
}

// Returns ranks at even steps; torch wrote only the first of them.
std::vector<int> continued(const std::vector<int>& first, int size) {
  if (first.size() < 2 || size < static_cast<int>(first.size())) return {};
  const std::int64_t step = std::int64_t{first[1]} - first[0];
  std::vector<int> ranks;
  for (int i = 0; i < size; ++i) {
    const std::int64_t rank = first[0] + step * i;
    const auto place = static_cast<std::size_t>(i);
    if (place < first.size() && first[place] != rank) return {};
    ranks.push_back(static_cast<int>(std::clamp<std::int64_t>(rank, -1, 1 << 24)));
  }
  return ranks;
}

RankGroup told_as(const ToldGroup& told, const Trace& trace) {
  RankGroup group{told.name, told.description, told.ranks, told.size};
  if (group.description == "undefined") group.description.clear();
  if (told.cut) group.ranks = continued(told.ranks, told.size);
  if (group.ranks.empty() && trace.world_size && told.size == *trace.world_size) {
    for (int rank = 0; rank < told.size; ++rank) group.ranks.push_back(rank);
  }
  if (group.size == 0) group.size = static_cast<int>(group.ranks.size());
  std::ranges::sort(group.ranks);
  return group;
}

void check_ranks(const Trace& trace, const ToldGroup& told, const RankGroup& group) {
  if (told.lies)
    refuse_group(trace, group_words(group) + " is given twice, with other ranks or another size");
  if (group.ranks.empty()) {
    const bool beyond = trace.world_size && group.size > *trace.world_size;
    if (!beyond) return;
    refuse_group(trace, group_words(group) + " of " + std::to_string(group.size) +
                            " ranks in a job of " + std::to_string(*trace.world_size));
  }
  if (group.ranks.size() != static_cast<std::size_t>(group.size)) {
    refuse_group(trace, group_words(group) + " is given as " + std::to_string(group.size) +
                            " ranks, and lists " + std::to_string(group.ranks.size()));
  }
  const bool twice = std::ranges::adjacent_find(group.ranks) != group.ranks.end();
  const bool beyond =
      group.ranks.front() < 0 || (trace.world_size && group.ranks.back() >= *trace.world_size);
  if (twice || beyond) {
    refuse_group(trace, group_words(group) + " lists " +
                            (twice ? "a rank twice" : "ranks beyond the job's") + ": " +
                            ranks_text(group.ranks));
  }
  if (trace.rank && !std::ranges::binary_search(group.ranks, *trace.rank)) {
    refuse_group(trace, group_words(group) + " of ranks " + ranks_text(group.ranks) +
                            " carries collectives of rank " + std::to_string(*trace.rank) +
                            ", which is none of them");
  }
}

bool refused_overlap(Role a, Role b) {
  const auto cuts = [](Role role) {
    return role == Role::kTensor || role == Role::kContext || role == Role::kPipeline;
  };
  const auto levels = [](Role role) { return role == Role::kInner || role == Role::kOuter; };
  if (a == b) return cuts(a);
  if (levels(a) && levels(b)) return true;
  const bool context = a == Role::kContext || b == Role::kContext;  // data may hold it
  return (cuts(a) && cuts(b)) || (!context && ((cuts(a) && levels(b)) || (levels(a) && cuts(b))));
}

// Refuses overlaps: two ways of cutting a job share only one rank, this trace's.
void check_overlaps(const Trace& trace, const std::vector<RankGroup>& all) {
  constexpr std::size_t kMaxGroups = 1000;  // of one rank
  std::vector<RankGroup> groups;
  std::ranges::copy_if(all, std::back_inserter(groups), [](const RankGroup& group) {
    return group.calls > 0 && !group.ranks.empty();
  });
  if (groups.size() > kMaxGroups) {
    refuse_group(trace, "collectives of " + std::to_string(groups.size()) +
                            " groups of ranks, more than one rank is in");
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const RankGroup& a = groups[j];
      const RankGroup& b = groups[i];
      if (!refused_overlap(a.role, b.role) || (a.role == b.role && a.ranks == b.ranks)) continue;
      std::vector<int> common;
      std::ranges::set_intersection(a.ranks, b.ranks, std::back_inserter(common));
      if (a.role != b.role && common.size() < 2) continue;
      refuse_group(trace, std::string("groups overlap: ") + role_text(a.role) + " of ranks " +
                              ranks_text(a.ranks) + " and " + role_text(b.role) + " of ranks " +
                              ranks_text(b.ranks));
    }
  }
}

// Counts of a group's collectives, which show its role if no description does.
struct Use {
  std::size_t all = 0, messages = 0, swaps = 0;
  std::size_t scattered = 0, reduced = 0;  // in backward passes, or sums of gradients behind them
  std::size_t forward = 0;                 // reduced or scattered in forward passes
};

// The host's time between a step's last gradient and the next step's forward pass: no gradient
// arrives before an update or the next step begins.
class BehindPasses {
 public:
  BehindPasses(const Trace& trace, const std::vector<Arrival>& arrivals) {
    for (const Arrival& arrival : arrivals) arrivals_.push_back(arrival.start);
    for (const HostSpan& span : trace.host) {
      if (span.kind == Host::kOptimizer || span.kind == Host::kStep) ends_.push_back(span.start);
    }
  }

  bool hold(Nanoseconds time) const {
    const auto arrival = std::ranges::upper_bound(arrivals_, time);
    const auto end = std::ranges::upper_bound(ends_, time);
    if (arrival == arrivals_.end()) return true;
    return end != ends_.end() && *end <= *arrival && arrival != arrivals_.begin();
  }

 private:
  std::vector<Nanoseconds> arrivals_;  // in order, as ends_
  std::vector<Nanoseconds> ends_;
};

// Returns the elements of the smallest gradient, which no sum of gradients is below; 2, more than a
// norm or a loss, without shapes.
std::int64_t least_gradient(const Trace& trace, const std::vector<Arrival>& arrivals) {
  std::int64_t least = 0;
  for (const Arrival& arrival : arrivals) {
    if (arrival.tensor < 0) continue;
    const std::int64_t elements = trace.tensors[index(arrival.tensor)].elements;
    if (elements > 0 && (least == 0 || elements < least)) least = elements;
  }
  return std::max<std::int64_t>(least, 2);
}

std::vector<Use> uses_of(const Trace& trace, const TraceTimeline& timeline,
                         const std::vector<Arrival>& arrivals) {
  std::vector<int> engine;
  for (const Arrival& arrival : arrivals) engine.push_back(arrival.thread);
  std::ranges::sort(engine);
  const BehindPasses behind_passes(trace, arrivals);
  const std::int64_t least = least_gradient(trace, arrivals);
  std::vector<Use> uses(trace.groups.size());
  for (const TracedCollective& collective : timeline.collectives) {
    if (collective.message.place < 0) continue;
    Use& use = uses[index(collective.message.place)];
    const std::string& kind = collective.message.kind;
    const bool scatters = kind == "reduce_scatter";
    const bool reduces = kind == "all_reduce";
    const bool engines = std::ranges::binary_search(engine, collective.thread);
    const bool behind = !engines && behind_passes.hold(collective.launched);
    const bool backward = engines || (behind && collective.message.elements >= least);
    ++use.all;
    use.messages += kind == "send_recv" ? 1 : 0;
    use.swaps += kind == "all_to_all" || kind == "deep_ep" ? 1 : 0;
    use.scattered += scatters && backward ? 1 : 0;
    use.reduced += reduces && backward ? 1 : 0;
    use.forward += (scatters || reduces) && !engines && !behind ? 1 : 0;
  }
  return uses;
}

Role role_by_use(const RankGroup& group, const Use& use, std::size_t passes) {
  const bool neighbours =
      !group.ranks.empty() && group.ranks.back() - group.ranks.front() + 1 == group.size;
  if (use.all == 0) return Role::kUnknown;
  if (use.messages == use.all) return Role::kPipeline;
  if (use.swaps > 0) return Role::kExpert;
  if (use.forward >= 2 * passes && use.scattered + use.reduced > 0 && neighbours) {
    return Role::kTensor;
  }
  if (use.scattered > 0) return Role::kInner;
  if (use.reduced > 0) return Role::kOuter;
  return Role::kUnknown;
}

// Returns the role of the one axis in a mesh's name, "infer_tp"; several axes have another.
Role role_of_axes(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Role>, 5> kAxes{{{"tp", Role::kTensor},
                                                                    {"cp", Role::kContext},
                                                                    {"pp", Role::kPipeline},
                                                                    {"ep", Role::kExpert},
                                                                    {"dp", Role::kData}}};
  Role found = Role::kUnknown;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('_'));
    name.remove_prefix(std::min(name.size(), part.size() + 1));
    for (const auto& [axis, role] : kAxes) {
      if (part == axis) found = found == Role::kUnknown ? role : Role::kOther;
    }
  }
  return found;
}

// Makes a lone inner or outer level plain data parallelism.
void settle_levels(std::vector<RankGroup>& groups) {
  if (group_of(groups, Role::kInner) != nullptr && group_of(groups, Role::kOuter) != nullptr)
    return;
  for (RankGroup& group : groups) {
    if (group.role == Role::kInner || group.role == Role::kOuter) group.role = Role::kData;
  }
}

std::string sizes_text(const Parallel& parallel) {
  return "tensor " + std::to_string(parallel.tensor) + " x context " +
         std::to_string(parallel.context) + " x pipeline " + std::to_string(parallel.pipeline);
}

int size_of_role(const std::vector<RankGroup>& groups, Role role) {
  const RankGroup* group = group_of(groups, role);
  return group == nullptr ? 1 : group->size;
}

// Returns the distance between ranks of a group; 0: unknown, or not even.
int step_of(const RankGroup& group) {
  if (group.ranks.size() < 2) return 0;
  const int step = group.ranks[1] - group.ranks[0];
  for (std::size_t i = 1; i < group.ranks.size(); ++i) {
    if (group.ranks[i] - group.ranks[i - 1] != step) return 0;
  }
  return step;
}

void check_step(const Trace& trace, const RankGroup* group, int expected) {
  if (group == nullptr || group->ranks.size() < 2) return;
  const int step = step_of(*group);
  if (step == expected) return;
  refuse_group(trace, std::string(role_text(group->role)) + " groups as that of ranks " +
                          ranks_text(group->ranks) +
                          " stand in another order than tensor, context, "
                          "data, pipeline, which scenarios cannot express: expected every " +
                          std::to_string(expected) + (expected == 1 ? "st rank" : "th rank"));
}

// Checks that gradients are summed over all ranks that hold the same part of the model.
void check_data(const Trace& trace, const std::vector<RankGroup>& groups, const Parallel& parallel,
                int replicas) {
  const RankGroup* data = group_of(groups, Role::kData);
  const RankGroup* inner = group_of(groups, Role::kInner);
  const RankGroup* outer = group_of(groups, Role::kOuter);
  const int seen = inner != nullptr && outer != nullptr ? inner->size * outer->size
                   : data != nullptr                    ? data->size
                                                        : 0;
  if (seen == 0 || seen == replicas || seen == replicas / parallel.context) return;
  refuse_group(trace, "gradients are summed over " + std::to_string(seen) + " ranks, but " +
                          std::to_string(*trace.world_size) + " ranks in " + sizes_text(parallel) +
                          " leave " + std::to_string(replicas / parallel.context) +
                          ": groups whose sizes lie");
}

}  // namespace

const RankGroup* group_of(const std::vector<RankGroup>& groups, Role role) {
  const RankGroup* most = nullptr;
  for (const RankGroup& group : groups) {
    const bool cuts = !carries_gradients(role) && !group.description.empty();
    if (group.role != role || group.size == 0 || (group.calls == 0 && !cuts)) continue;
    const auto order = [](const RankGroup& one) { return std::pair(one.calls > 0, one.size); };
    if (most == nullptr || order(group) > order(*most)) most = &group;
  }
  return most;
}

Role role_named(std::string_view description) {
  std::string word;
  for (const char c : description) {
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (word.starts_with("mesh_")) word.erase(0, 5);
  const auto has = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  constexpr std::pair<Role, std::string_view> kNames[] = {
      {Role::kTensor, "tp tensor_model_parallel_group"},
      {Role::kContext, "cp context_parallel_group"},
      {Role::kPipeline, "pp pipeline_model_parallel_group"},
      {Role::kExpert, "ep expert_model_parallel_group"},
      {Role::kExpertTensor, "etp expt_tp expert_tensor_parallel_group"},
      {Role::kData, "dp dp_cp"},
      {Role::kInner, "fsdp shard"},
      {Role::kExpertData, "efsdp expt_dp"},
      {Role::kOuter, "dp_replicate replicate"},
      {Role::kOther, "loss"},
  };
  for (const auto& [role, names] : kNames) {
    std::istringstream all{std::string(names)};
    for (std::string name; all >> name;) {
      if (word == name) return role;
    }
  }
  if (has("optimizer_instance") || has("embedding") || has("tensor_and_")) return Role::kOther;
  if (has("hierarchical_context")) return Role::kContext;
  const bool data = has("data_parallel") || has("_dp");
  if (has("inter_") && data) return Role::kOuter;
  const bool experts = has("expert") || has("expt");
  if ((experts && (has("data_parallel") || has("_dp"))) || has("mod_ep")) return Role::kExpertData;
  if (has("intra_") && data) return Role::kInner;
  if (word.starts_with("dp_shard")) return Role::kInner;
  if (word.starts_with("data_parallel_group")) return Role::kData;
  return has("_parallel") ? Role::kOther : role_of_axes(word);
}

std::vector<RankGroup> groups_of(const Trace& trace, const TraceTimeline& timeline,
                                 const std::vector<Arrival>& arrivals) {
  const std::vector<Use> uses = uses_of(trace, timeline, arrivals);
  const auto marked = std::ranges::count(trace.host, Host::kStep, &HostSpan::kind);
  const auto updates = std::ranges::count(trace.host, Host::kOptimizer, &HostSpan::kind);
  const auto steps =
      std::max<std::size_t>(1, static_cast<std::size_t>(marked > 0 ? marked : updates));
  std::vector<RankGroup> groups;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    RankGroup& group = groups.emplace_back(told_as(trace.groups[i], trace));
    group.calls = uses[i].all;
    group.role = role_named(group.description);
    if (group.role == Role::kUnknown) group.role = role_by_use(group, uses[i], steps);
  }
  settle_levels(groups);
  return groups;
}

void group_by_shapes(const Trace& trace, TraceTimeline& timeline, std::vector<RankGroup>& groups) {
  const auto scatters = [](const TracedCollective& c) {
    return c.message.kind == "reduce_scatter";
  };
  const auto grouped = [](const TracedCollective& c) { return c.message.place >= 0; };
  if (std::ranges::none_of(timeline.collectives, scatters) ||
      std::ranges::any_of(timeline.collectives, grouped)) {
    return;
  }
  std::optional<std::int64_t> ranks;
  for (const TracedCollective& collective : timeline.collectives) {
    const TracedMessage& message = collective.message;
    const bool gathers = message.kind == "all_gather";
    const bool other = message.kind == "send_recv" || message.kind == "all_to_all";
    const std::int64_t more = gathers ? message.got : message.given;
    const std::int64_t less = gathers ? message.given : message.got;
    const bool divides = less > 0 && more > less && more % less == 0;
    if (!gathers && !scatters(collective) && !other) continue;
    if (!divides || other || (ranks && *ranks != more / less)) {
      refuse_group(trace,
                   "its collectives name no groups of ranks, and what they take in and give does "
                   "not tell one: record with torch 2.4 or later, which names them");
    }
    ranks = more / less;
  }
  if (!trace.world_size || *ranks != *trace.world_size) {
    refuse_group(trace,
                 "its collectives name no groups of ranks, and gradients are scattered over " +
                     std::to_string(*ranks) + " of " +
                     (trace.world_size ? std::to_string(*trace.world_size) : "so many") +
                     ": nothing tells which, unless torch 2.4 or later records it");
  }
  RankGroup& world = groups.emplace_back();
  world.size = *trace.world_size;
  for (int rank = 0; rank < world.size; ++rank) world.ranks.push_back(rank);
  world.role = Role::kData;
  world.calls = timeline.collectives.size();
  for (TracedCollective& collective : timeline.collectives) {
    collective.message.place = static_cast<int>(groups.size()) - 1;
  }
}

void check_groups(const Trace& trace, const TraceTimeline& timeline,
                  const std::vector<RankGroup>& groups) {
  for (std::size_t i = 0; i < trace.groups.size(); ++i) {
    if (groups[i].calls > 0) check_ranks(trace, trace.groups[i], groups[i]);
  }
  check_overlaps(trace, groups);
  for (const TracedCollective& collective : timeline.collectives) {
    const TracedMessage& message = collective.message;
    const bool gathers = message.kind == "all_gather";
    const bool known = message.place >= 0 && message.given > 0 && message.got > 0;
    if (!known || (!gathers && message.kind != "reduce_scatter")) continue;
    const RankGroup& group = groups[index(message.place)];
    const std::int64_t more = gathers ? message.got : message.given;
    const std::int64_t less = gathers ? message.given : message.got;
    if (group.size == 0 || more == less * group.size) continue;
    refuse_group(trace, group_words(group) + " is given as " + std::to_string(group.size) +
                            " ranks, and its " + message.kind + " takes in " +
                            std::to_string(message.given) + " elements and gives " +
                            std::to_string(message.got));
  }
}

bool gathers_what_it_sums(const std::vector<ObservedExchange>& exchanges, int group) {
  std::int64_t gathered = 0, summed = 0;
  for (const ObservedExchange& exchange : exchanges) {
    if (exchange.in != group) continue;
    std::int64_t& most = exchange.kind == "all_gather" ? gathered : summed;
    const bool sums = exchange.kind == "all_reduce" && exchange.elements > 1;
    if (sums || exchange.kind == "all_gather") most = std::max(most, exchange.elements);
  }
  return summed > 0 && gathered >= summed;
}

bool tells_a_cut(const TraceTimeline& timeline, const std::vector<RankGroup>& groups) {
  constexpr std::array kCuts{Role::kTensor, Role::kContext,  Role::kExpert,    Role::kExpertTensor,
                             Role::kInner,  Role::kPipeline, Role::kExpertData};
  const bool cut = std::ranges::any_of(groups, [&](const RankGroup& group) {
    return group.calls > 0 && group.size != 1 &&
           std::ranges::find(kCuts, group.role) != kCuts.end();
  });
  if (cut) return true;
  std::vector<ObservedExchange> exchanges;
  for (const TracedCollective& collective : timeline.collectives) {
    const int place = collective.message.place;
    if (place < 0 || !carries_gradients(groups[index(place)].role)) continue;
    if (collective.message.kind == "reduce_scatter") return true;
    exchanges.push_back(exchange_of(collective, 0));
    exchanges.back().in = place;
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool shared = groups[i].size > 1 && gathers_what_it_sums(exchanges, static_cast<int>(i));
    if (shared) return true;
  }
  return false;
}

Parallel layout_of(const Trace& trace, const std::vector<RankGroup>& groups) {
  if (!trace.world_size) {
    refuse_group(trace,
                 "a job cut into groups, whose number of ranks is not given (distributedInfo)");
  }
  for (const RankGroup& group : groups) {
    const bool cuts = group.role != Role::kUnknown && group.role != Role::kOther;
    if (group.calls == 0 || !cuts || group.size > 0) continue;
    refuse_group(trace, group_words(group) + " tells neither its ranks nor how many they are");
  }
  const int world = *trace.world_size;
  Parallel parallel;
  parallel.tensor = size_of_role(groups, Role::kTensor);
  parallel.context = size_of_role(groups, Role::kContext);
  parallel.pipeline = size_of_role(groups, Role::kPipeline);
  const int model = parallel.model_ranks();
  if (world % model != 0) {
    refuse_group(trace, sizes_text(parallel) + " is " + std::to_string(model) +
                            " ranks, which do not divide the job's " + std::to_string(world));
  }
  const int stage = world / parallel.pipeline;
  check_data(trace, groups, parallel, stage / parallel.tensor);
  check_step(trace, group_of(groups, Role::kTensor), 1);
  check_step(trace, group_of(groups, Role::kContext), parallel.tensor);
  const RankGroup* pipeline = group_of(groups, Role::kPipeline);
  const int apart = pipeline == nullptr ? 0 : step_of(*pipeline);
  parallel.pipeline_inside = apart != stage && apart == parallel.tensor && parallel.context == 1;
  if (!parallel.pipeline_inside) check_step(trace, pipeline, stage);
  const RankGroup* expert = group_of(groups, Role::kExpert);
  if (expert != nullptr) {
    parallel.expert = expert->size;
    parallel.expert_tensor = std::max(1, step_of(*expert));
    const int shared = parallel.expert * parallel.expert_tensor;
    if (stage % shared != 0) {
      refuse_group(trace, "experts over " + std::to_string(parallel.expert) + " ranks, " +
                              std::to_string(parallel.expert_tensor) +
                              " apart, which do not divide the " + std::to_string(stage) +
                              " ranks of a pipeline stage");
    }
  }
  return parallel;
}

}  // namespace syncline::job::kineto
