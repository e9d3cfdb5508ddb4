#include "formats/dialect/write.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "core/base/error.h"
#include "core/collective/library.h"
#include "core/plan.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

std::vector<const collective::Collective*> collectives_of(const plan::Plan& plan,
                                                          std::size_t bucket,
                                                          plan::StreamId& stream) {
  std::vector<const collective::Collective*> list;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr || collective->bucket != static_cast<int>(bucket)) continue;
    list.push_back(collective);
    stream = op.stream;
  }
  return list;
}

bool same_tensors(const plan::Bucket& a, const plan::Bucket& b) {
  auto x = a.tensors;
  auto y = b.tensors;
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  return x == y;
}

// Returns the time of the forward or the backward pass, which compute fusion changes.
Seconds compute_time(const plan::Plan& plan, plan::Phase phase) {
  Seconds sum = 0;
  for (const auto& op : plan.ops) {
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    if (compute != nullptr && compute->phase == phase) sum += compute->seconds;
  }
  return sum;
}

bool same_time(Seconds a, Seconds b) { return std::abs(a - b) <= 1e-9 * std::max(a, b); }

bool same_collective(const collective::Collective* a, const collective::Collective* b) {
  return a->kind == b->kind && a->algorithm == b->algorithm && a->groups == b->groups &&
         a->unit == b->unit && a->nccl == b->nccl;
}

using Reason = plan::Busy::Reason;

// Number and total time of operations that keep streams busy for one of these reasons.
struct Handling {
  std::size_t count = 0;
  Seconds seconds = 0;
};

Handling handling_of(const plan::Plan& plan, std::initializer_list<Reason> reasons) {
  Handling sum;
  for (const auto& op : plan.ops) {
    const auto reason = plan::reason_of(op.work);
    if (!reason || std::find(reasons.begin(), reasons.end(), *reason) == reasons.end()) continue;
    ++sum.count;
    sum.seconds += plan::seconds_of(op.work);
  }
  return sum;
}

// Returns the number of pieces of the backward pass that wait for the network.
std::size_t held_backwards(const plan::Plan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.ops.begin(), plan.ops.end(), [](const plan::Op& op) {
        const auto* compute = std::get_if<plan::Compute>(&op.work);
        return compute != nullptr && compute->phase == plan::Phase::kBackward && !op.after.empty();
      }));
}

Bytes padded_bytes(const plan::Plan& plan) {
  Bytes sum = 0;
  for (const auto& bucket : plan.buckets) sum += bucket.padded_bytes;
  return sum;
}

// Returns the difference in work around the collectives.
std::string schedule_difference(const plan::Plan& wanted, const plan::Plan& found) {
  if (plan::crosses_steps(wanted) != plan::crosses_steps(found)) {
    return plan::crosses_steps(wanted) ? "its next step begins when all parameters are in"
                                       : "its next step begins before all parameters are in";
  }
  const auto held = held_backwards(wanted);
  if (held != held_backwards(found)) {
    return held == 0 ? "its backward pass waits for collectives"
                     : "its backward pass waits for other collectives, or none";
  }
  const auto waits = handling_of(wanted, {Reason::kTick}).count;
  const auto other_waits = handling_of(found, {Reason::kTick}).count;
  if (waits != other_waits) {
    return waits == 0         ? "it releases gradients at ticks"
           : other_waits == 0 ? "it releases gradients as soon as they are ready, not at ticks"
                              : "it releases gradients at other ticks";
  }
  const auto copies = handling_of(wanted, {Reason::kCopyIn, Reason::kCopyOut}).count;
  if (copies != handling_of(found, {Reason::kCopyIn, Reason::kCopyOut}).count) {
    return copies == 0 ? "it copies gradients into buckets and back"
                       : "it does not copy gradients into buckets and back";
  }
  const auto syncs = handling_of(wanted, {Reason::kHost}).count;
  const auto other_syncs = handling_of(found, {Reason::kHost}).count;
  if (syncs < other_syncs) return "its host waits for collectives";
  if (syncs > other_syncs) return "its host does not wait for collectives";
  return {};
}

}  // namespace

std::string plan_difference(const plan::Plan& wanted, const plan::Plan& found) {
  if (wanted.steps != found.steps) {
    return "it averages every " + std::to_string(found.steps) +
           (found.steps == 1 ? " step" : " steps") + " instead of " + std::to_string(wanted.steps);
  }
  if (wanted.outer != found.outer) {
    return found.outer.any() ? "it averages by another outer step" : "it averages by no outer step";
  }
  const int streams = plan::communication_streams(wanted);
  const int other_streams = plan::communication_streams(found);
  if (streams != other_streams) {
    return "it uses " + std::to_string(other_streams) + " communication " +
           (other_streams == 1 ? "stream" : "streams") + " instead of " + std::to_string(streams);
  }
  if (wanted.buckets.size() != found.buckets.size()) {
    return "it exchanges " + std::to_string(found.buckets.size()) +
           (found.buckets.size() == 1 ? " bucket" : " buckets") + " instead of " +
           std::to_string(wanted.buckets.size());
  }
  for (std::size_t b = 0; b < wanted.buckets.size(); ++b) {
    const std::string name = "bucket " + std::to_string(b);
    if (!same_tensors(wanted.buckets[b], found.buckets[b])) return name + " holds other gradients";
    if (wanted.buckets[b].ready != found.buckets[b].ready) {
      return name + " waits for another gradient";
    }
    if (wanted.buckets[b].first != found.buckets[b].first ||
        wanted.buckets[b].elements != found.buckets[b].elements) {
      return name + " is another part of its gradient";
    }
    if (wanted.buckets[b].codec != found.buckets[b].codec) return name + " is compressed otherwise";
    if (wanted.buckets[b].kept != found.buckets[b].kept) return name + " keeps another share";
    plan::StreamId a_stream = 0, b_stream = 0;
    const auto a = collectives_of(wanted, b, a_stream);
    const auto other = collectives_of(found, b, b_stream);
    if (a_stream != b_stream) return name + " travels on another stream";
    if (!std::equal(a.begin(), a.end(), other.begin(), other.end(), same_collective)) {
      return name + " is sent by other collectives";
    }
  }
  for (const plan::Phase phase : {plan::Phase::kForward, plan::Phase::kBackward}) {
    if (!same_time(compute_time(wanted, phase), compute_time(found, phase))) {
      return "it fuses other operators of the computation";
    }
  }
  return schedule_difference(wanted, found);
}

std::string time_difference(const plan::Plan& wanted, const plan::Plan& found) {
  std::vector<std::string> causes;
  const auto compare = [&](Seconds a, Seconds b, const char* what) {
    if (!same_time(a, b)) causes.push_back(std::string(what) + (b > a ? " longer" : " shorter"));
  };
  if (padded_bytes(wanted) != padded_bytes(found)) {
    causes.push_back(padded_bytes(found) > padded_bytes(wanted)
                         ? "it pads gradients on the wire"
                         : "it does not pad gradients on the wire");
  }
  const auto handling = [&](std::initializer_list<Reason> reasons, const char* what) {
    compare(handling_of(wanted, reasons).seconds, handling_of(found, reasons).seconds, what);
  };
  handling({Reason::kEncode}, "its encoding takes");
  handling({Reason::kDecode}, "its decoding takes");
  handling({Reason::kCopyIn, Reason::kCopyOut}, "its copying takes");
  const Seconds update = compute_time(wanted, plan::Phase::kUpdate);
  compare(update, compute_time(found, plan::Phase::kUpdate), "its update takes");
  if (causes.empty()) return "its operations wait for one another otherwise";
  std::string text = causes.front();
  for (std::size_t i = 1; i < causes.size(); ++i) {
    text += (i + 1 == causes.size() ? " and " : ", ") + causes[i];
  }
  return text;
}

std::vector<double> sizes_that_close(const std::vector<plan::Bucket>& closed) {
  constexpr auto kBytes = static_cast<double>(kMiB);
  if (closed.empty()) return {};
  // Each bucket has to close at its last tensor at the latest: the smallest limits the size.
  const auto least = std::min_element(
      closed.begin(), closed.end(),
      [](const plan::Bucket& x, const plan::Bucket& y) { return x.bytes < y.bytes; });
  const double exact = static_cast<double>(least->bytes) / kBytes;
  const double whole = std::floor(exact);
  if (whole < 1) return {exact};
  return {whole, exact};
}

std::string on_one_line(const Json& json) {
  std::string text;
  for (const char c : json.dump(0)) {
    if (c != '\n') {
      text += c;
    } else if (text.back() == ',') {
      text += ' ';
    }
  }
  return text;
}

std::string config_text(const Dialect& dialect, const Json& config, const Parallel& parallel) {
  const bool script = dialect.code != nullptr && (!parallel.whole_job() || dialect.cuts_jobs);
  return script ? dialect.code(config) : on_one_line(config);
}

std::string kept_algorithm(const Strategy& strategy, const Cluster& cluster) {
  const auto known = collective::library_algorithms(cluster);
  const bool runs = std::find(known.begin(), known.end(), strategy.algorithm) != known.end();
  return runs ? strategy.algorithm : std::string();
}

namespace {

// Returns buckets without buffers, which averaging sends too and no configuration mentions.
std::vector<plan::Bucket> gradient_buckets(const plan::Plan& plan, const Workload& workload) {
  std::vector<plan::Bucket> buckets = plan.buckets;
  for (plan::Bucket& bucket : buckets) {
    std::erase_if(bucket.tensors, [&](int t) { return t >= std::ssize(workload.tensors); });
  }
  std::erase_if(buckets, [](const plan::Bucket& bucket) { return bucket.tensors.empty(); });
  return buckets;
}

}  // namespace

std::optional<Written> write_config(const Dialect& dialect, const Strategy& strategy,
                                    const Workload& workload, const Cluster& cluster) {
  if (dialect.suggest == nullptr) return std::nullopt;
  const plan::Plan wanted = plan::exchange_plan(workload, cluster, strategy);
  const std::string algorithm = kept_algorithm(strategy, cluster);
  const Cluster exchange = exchanging(cluster, workload.parallel);
  std::optional<Written> nearest;
  std::exception_ptr refusal;
  for (const Json& config :
       dialect.suggest(strategy, gradient_buckets(wanted, workload), workload, exchange)) {
    Reading reading;
    try {
      reading = reading_of(dialect, config, workload, cluster, {.algorithm = algorithm});
    } catch (const InputError&) {
      refusal = std::current_exception();
      continue;
    }
    const std::string difference =
        algorithm.empty()
            ? "its library runs no " + strategy.algorithm
            : plan_difference(wanted, plan::exchange_plan(workload, cluster, reading.strategy));
    if (!difference.empty() && nearest) continue;
    nearest = Written{};
    nearest->config = config;
    if (algorithm != collective::library_algorithm(cluster)) nearest->algorithm = algorithm;
    nearest->exact = difference.empty();
    nearest->difference = difference;
    nearest->strategy = std::move(reading.strategy);
    if (nearest->exact) break;
  }
  if (!nearest && refusal != nullptr) std::rethrow_exception(refusal);
  if (nearest && !algorithm.empty()) {
    nearest->setting = nccl_setting(nearest->strategy, workload, cluster);
  }
  return nearest;
}

}  // namespace syncline::dialect
