#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "reports/bars.h"
#include "reports/format.h"
#include "reports/gantt.h"
#include "reports/trace.h"

namespace syncline::reports {
namespace {

using chart::Box;

constexpr std::size_t kListedBuckets = 250;  // per strategy
constexpr std::size_t kListedTensors = 48;   // per bucket

struct Stretch {
  Seconds begin = 0;
  Seconds end = 0;
  Seconds length() const { return end - begin; }
};

std::optional<int> bucket_of(const plan::Work& work) {
  if (const auto* collective = std::get_if<collective::Collective>(&work)) {
    return collective->bucket >= 0 ? std::optional(collective->bucket) : std::nullopt;
  }
  const auto* busy = std::get_if<plan::Busy>(&work);
  return busy != nullptr && busy->bucket >= 0 ? std::optional(busy->bucket) : std::nullopt;
}

bool is_exchange(const plan::Work& work) {
  return std::holds_alternative<collective::Collective>(work);
}

int colour_of(const plan::Work& work) {
  if (const auto* compute = std::get_if<plan::Compute>(&work)) {
    if (compute->phase == plan::Phase::kForward) return chart::kSky;
    return compute->phase == plan::Phase::kBackward ? chart::kBlue : chart::kPurple;
  }
  if (is_exchange(work)) return chart::kGreen;
  return plan::reason_of(work) == plan::Busy::Reason::kTick ? chart::kGrey : chart::kOrange;
}

std::string link_of(std::size_t traced, int bucket) {
  return "s-bucket-" + std::to_string(traced) + "-" + std::to_string(bucket);
}

// Returns the union of stretches, as disjoint stretches in order.
std::vector<Stretch> merged(std::vector<Stretch> stretches) {
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  std::vector<Stretch> result;
  for (const auto& stretch : stretches) {
    if (result.empty() || stretch.begin > result.back().end) {
      result.push_back(stretch);
    } else {
      result.back().end = std::max(result.back().end, stretch.end);
    }
  }
  return result;
}

// Returns `these` without `those`. Requires that both are merged.
std::vector<Stretch> without(const std::vector<Stretch>& these, const std::vector<Stretch>& those) {
  std::vector<Stretch> result;
  for (auto [begin, end] : these) {
    for (const auto& other : those) {
      if (other.end <= begin || other.begin >= end) continue;
      if (other.begin > begin) result.push_back({begin, other.begin});
      begin = other.end;
    }
    if (begin < end) result.push_back({begin, end});
  }
  return result;
}

// Draws the last period of one timeline.
class Lanes {
 public:
  Lanes(const measure::Report& report, std::size_t place)
      : traced_(report.traced[place]), workload_(report.traced_workload), place_(place) {
    const auto& ends = traced_.timeline.period_ends;
    if (ends.size() > 1) window_.begin = ends[ends.size() - 2];
    if (!ends.empty()) window_.end = ends.back();
    for (const auto& span : traced_.timeline.spans) {
      if (span.end <= window_.begin || span.begin >= window_.end || span.end <= span.begin)
        continue;
      lanes_[{span.rank, op_of(span).stream}].push_back(&span);
      ranks_.insert(span.rank);
    }
  }

  std::size_t drawn_lanes() const { return std::min(lanes_.size(), kGanttLanes); }

  // Adds at most `bars` bars per lane.
  void add_to(chart::Figure& figure, std::size_t bars, std::size_t& left_out) const {
    std::size_t drawn = 0;
    for (const auto& [key, spans] : lanes_) {
      if (drawn++ == kGanttLanes) {
        left_out += lanes_.size() - kGanttLanes;
        break;
      }
      const int lane = add_lane(figure, lane_name(key.first, key.second, spans));
      for (auto& box : boxes(spans, lane, bars)) figure.boxes.push_back(std::move(box));
      if (traced_.plan.computes(key.second)) add_exposed(figure, key.first, spans, lane);
    }
  }

 private:
  using Spans = std::vector<const run::Span*>;

  const plan::Op& op_of(const run::Span& span) const {
    return traced_.plan.ops[static_cast<std::size_t>(span.op)];
  }

  Stretch seen(const run::Span& span) const {
    return {std::max(span.begin, window_.begin) - window_.begin,
            std::min(span.end, window_.end) - window_.begin};
  }

  std::string lane_name(int rank, plan::StreamId stream, const Spans& spans) const {
    const bool waits = std::any_of(spans.begin(), spans.end(), [&](const run::Span* span) {
      return plan::reason_of(op_of(*span).work) == plan::Busy::Reason::kTick;
    });
    return one_line(traced_.strategy) + ": " +
           (ranks_.size() > 1 ? "rank " + std::to_string(rank) + " " : "") +
           (waits ? "cycles" : plan::stream_name(traced_.plan, stream, "communication"));
  }

  std::string name_of(const run::Span& span) const {
    const plan::Op& op = op_of(span);
    std::string name =
        plan::describe(op, traced_.plan, workload_) + ", " + seconds_text(span.end - span.begin);
    if (const auto bucket = bucket_of(op.work)) {
      const plan::Bucket& about = traced_.plan.buckets[static_cast<std::size_t>(*bucket)];
      name += ", " + bytes_text(about.bytes) + " of " + plural(about.tensors.size(), "tensor");
    }
    return name;
  }

  // Returns bars in order of time, at most `most`; if there are more, short neighbours become one.
  std::vector<Box> boxes(const Spans& spans, int lane, std::size_t most) const {
    // Two neighbours that stay apart are longer than this together.
    const Seconds least =
        spans.size() > most ? 2 * window_.length() / static_cast<double>(most) : 0;
    std::vector<Box> list;
    std::size_t together = 0;
    Seconds longest = 0;
    for (const run::Span* span : spans) {
      const auto [begin, end] = seen(*span);
      const bool joins = !list.empty() && end - list.back().from < least;
      together = joins ? together + 1 : 1;
      if (!joins) {
        const auto bucket = bucket_of(op_of(*span).work);
        list.push_back({lane, begin, end, colour_of(op_of(*span).work), name_of(*span),
                        bucket ? link_of(place_, *bucket) : std::string()});
        longest = end - begin;
        continue;
      }
      Box& box = list.back();
      box.to = end;
      if (end - begin > longest) {
        longest = end - begin;
        box.colour = colour_of(op_of(*span).work);
      }
      box.name = plural(together, "short operation") + ", the last: " + name_of(*span);
      box.link.clear();
    }
    return list;
  }

  // Adds the time of exchanges during which the compute stream is idle.
  void add_exposed(chart::Figure& figure, int rank, const Spans& spans, int lane) const {
    std::vector<Stretch> busy, exchanging;
    for (const run::Span* span : spans) busy.push_back(seen(*span));
    for (const auto& [key, others] : lanes_) {
      if (key.first != rank) continue;
      for (const run::Span* span : others) {
        if (is_exchange(op_of(*span).work)) exchanging.push_back(seen(*span));
      }
    }
    const Seconds least = window_.length() * 1e-6;
    for (const auto& [begin, end] : without(merged(exchanging), merged(busy))) {
      if (end - begin < least) continue;
      figure.boxes.push_back({lane, begin, end, chart::kVermilion,
                              "exposed communication, " + seconds_text(end - begin)});
    }
  }

  const measure::Traced& traced_;
  const Workload& workload_;
  std::size_t place_;
  Stretch window_;
  std::map<std::pair<int, plan::StreamId>, Spans> lanes_;
  std::set<int> ranks_;
};

void list_buckets(const measure::Report& report, std::size_t place, Illustration& picture) {
  const measure::Traced& traced = report.traced[place];
  const std::size_t listed = std::min(traced.plan.buckets.size(), kListedBuckets);
  for (std::size_t b = 0; b < listed; ++b) {
    const plan::Bucket& bucket = traced.plan.buckets[b];
    picture.details.lines.push_back(
        {{one_line(traced.strategy), std::to_string(b), bytes_text(bucket.bytes),
          std::to_string(bucket.tensors.size()),
          tensors_text(bucket, report.traced_workload, kListedTensors)},
         b == 0 && !picture.details.lines.empty()});
    picture.ids.push_back(link_of(place, static_cast<int>(b)));
  }
  if (listed < traced.plan.buckets.size()) {
    picture.details.lines.push_back(
        {{one_line(traced.strategy), "", "", "",
          "and " + plural(traced.plan.buckets.size() - listed, "bucket") + " more"}});
    picture.ids.emplace_back();
  }
}

std::string note_of(const measure::Report& report, const std::vector<std::size_t>& which,
                    std::size_t left_out) {
  std::vector<std::string> names;
  int steps = 1;
  for (const std::size_t place : which) {
    names.push_back(quoted_name(report.traced[place].strategy));
    steps = std::max(steps, report.traced[place].plan.steps);
  }
  std::string note = "Under each other: " + join_and(names) + ".";
  if (steps > 1) note += " Where parameters are averaged rarely, all steps up to an averaging.";
  if (left_out > 0) note += " " + plural(left_out, "stream") + " of further ranks left out.";
  return note;
}

}  // namespace

Illustration gantt(const measure::Report& report, const std::vector<std::size_t>& which) {
  Illustration picture;
  chart::Figure& figure = picture.figure;
  figure.id = "s-gantt";
  figure.title = "A step in steady state, stream by stream";
  figure.across = {"time in the step", chart::Unit::kSeconds, false, true};
  figure.keys = {{"forward", chart::kSky},
                 {"backward", chart::kBlue},
                 {"update", chart::kPurple},
                 {"communication", chart::kGreen},
                 {"exposed: nothing is computed meanwhile", chart::kVermilion},
                 {"encode, copy, host, slowed", chart::kOrange},
                 {"wait for a cycle", chart::kGrey}};
  picture.heading = "Buckets and what is in them";
  picture.details.columns = {
      {"strategy", false}, {"bucket"}, {"size"}, {"tensors"}, {"in order", false}};
  std::size_t left_out = 0;
  std::vector<Lanes> all;
  std::size_t lanes = 1;
  for (const std::size_t place : which) {
    all.emplace_back(report, place);
    lanes += all.back().drawn_lanes();
    list_buckets(report, place, picture);
  }
  for (const auto& one : all) one.add_to(figure, kGanttBars / lanes, left_out);
  drop_unused_keys(figure);
  figure.note = note_of(report, which, left_out);
  return picture;
}

std::vector<Illustration> gantt_pairs(const measure::Report& report) {
  std::vector<Illustration> pictures;
  constexpr std::size_t kShown = 6;
  for (std::size_t at = 0; at + 1 < std::min(report.traced.size(), 2 * kShown); at += 2) {
    auto& picture = pictures.emplace_back(gantt(report, {at, at + 1}));
    picture.figure.id += "-" + std::to_string(at / 2);
  }
  return pictures;
}

}  // namespace syncline::reports
