#include "core/job/kineto/format.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "core/job/kineto/rank.h"
#include "core/job/kineto/warnings.h"

namespace syncline::job::kineto {
namespace {

void put_in_order(std::vector<RankRead>& ranks) {
  const bool told =
      std::ranges::all_of(ranks, [](const RankRead& read) { return read.rank.has_value(); });
  if (!told && ranks.size() > 1) {
    // The user's order then.
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].observed.ranks[0].rank = static_cast<int>(i);
    }
    ranks[0].notes.push_back(
        "not every file tells its rank (distributedInfo): taken in the order given");
    return;
  }
  std::ranges::stable_sort(ranks, {}, &RankRead::rank);
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i].rank != ranks[i - 1].rank) continue;
    throw InputError(ranks[i].observed.file + ": rank " + std::to_string(*ranks[i].rank) +
                     " once more, as " + ranks[i - 1].observed.file + " is; give one file a rank");
  }
}

void check_world(const std::vector<RankRead>& ranks) {
  const RankRead* first = nullptr;
  for (const RankRead& read : ranks) {
    if (!read.world_size) continue;
    if (first != nullptr && *read.world_size != *first->world_size) {
      throw InputError(read.observed.file + ": of " + std::to_string(*read.world_size) +
                       " ranks, but " + first->observed.file + " is of " +
                       std::to_string(*first->world_size) + ": not the same job");
    }
    if (first == nullptr) first = &read;
  }
}

// The same collective has on every rank the same kind, group and place among those in the step.
using Place = std::tuple<std::string, std::string, std::size_t>;

std::vector<Place> places_of(const Step& step) {
  std::map<std::pair<std::string, std::string>, std::size_t> counts;
  std::vector<Place> places;
  for (const Exchange& exchange : step.exchanges) {
    const std::size_t place = counts[{exchange.kind, exchange.group}]++;
    places.emplace_back(exchange.kind, exchange.group, place);
  }
  return places;
}

struct Share {
  Exchange* exchange = nullptr;
  int rank = 0;
};

// What tells its own time cannot be told where the ranks disagree on what they sent.
bool agree(const std::vector<Share>& shares) {
  return std::ranges::all_of(shares, [&](const Share& share) {
    const Exchange& first = *shares.front().exchange;
    return share.exchange->kind == "all_to_all" || share.exchange->elements == first.elements;
  });
}

std::map<Place, std::vector<Share>> shares_of(std::vector<Rank>& ranks, int number) {
  std::map<Place, std::vector<Share>> shares;
  for (Rank& rank : ranks) {
    const auto step = std::ranges::find(rank.steps, number, &Step::number);
    if (step == rank.steps.end()) continue;
    const std::vector<Place> places = places_of(*step);
    for (std::size_t i = 0; i < places.size(); ++i) {
      shares[places[i]].push_back({&step->exchanges[i], rank.rank});
    }
  }
  return shares;
}

// Sets the time of every collective; true: all ranks agree on them.
bool match_step(Observed& observed, const Step& first, bool typical) {
  bool agreed = true;
  const std::vector<Place> places = places_of(first);
  for (const auto& [place, shares] : shares_of(observed.ranks, first.number)) {
    if (!agree(shares)) {
      agreed = false;
      continue;
    }
    const auto by_duration = [](const Share& share) { return share.exchange->duration; };
    const Share least = *std::ranges::min_element(shares, {}, by_duration);
    const Share most = *std::ranges::max_element(shares, {}, by_duration);
    for (const Share& share : shares) share.exchange->time = least.exchange->duration;
    const auto of_first = std::ranges::find(places, place);
    if (!typical || of_first == places.end() || shares.size() < 2) continue;
    observed.skew.push_back({static_cast<std::size_t>(of_first - places.begin()),
                             least.exchange->duration, most.exchange->duration, least.rank});
  }
  std::ranges::sort(observed.skew, {}, &Skew::exchange);
  return agreed;
}

void name_groups(Observed& observed, bool one_group) {
  if (!one_group) return;
  // Without a word on groups there is one: the world.
  for (Rank& rank : observed.ranks) {
    for (Step& step : rank.steps) {
      for (Exchange& exchange : step.exchanges) {
        if (exchange.ranks == 0) exchange.ranks = observed.world_size;
      }
    }
  }
}

Observed join(std::vector<RankRead> ranks) {
  put_in_order(ranks);
  check_world(ranks);
  Observed observed = std::move(ranks.front().observed);
  std::vector<std::string> notes = std::move(ranks.front().notes);
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    Observed& other = ranks[i].observed;
    observed.ranks.push_back(std::move(other.ranks.front()));
    observed.comm_hook = observed.comm_hook || other.comm_hook;
    for (const std::string& note : ranks[i].notes) {
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
    }
  }
  int largest_group = 0;
  for (const Exchange& exchange : typical_step(observed.ranks.front()).exchanges) {
    largest_group = std::max(largest_group, exchange.ranks);
  }
  const bool told =
      std::ranges::any_of(ranks, [](const RankRead& read) { return read.world_size.has_value(); });
  if (!told) {
    observed.world_size = std::max({1, largest_group, static_cast<int>(observed.ranks.size())});
  }
  name_groups(observed, largest_group == 0);
  bool agreed = true;
  if (observed.ranks.size() > 1) {
    const int typical = typical_step(observed.ranks.front()).number;
    const std::vector<Step> steps = observed.ranks.front().steps;
    for (const Step& step : steps) {
      agreed = match_step(observed, step, step.number == typical) && agreed;
    }
  }
  warn(observed,
       {ranks.front().operators_a_step, ranks.front().collectives_on_device, told, agreed},
       std::move(notes));
  return observed;
}

// The events may begin far behind the head: process groups of large jobs come before them.
bool recognises(const Head& head) {
  const auto has = [&](std::string_view key) { return head.bytes.find(key) != std::string::npos; };
  const std::size_t begin = head.bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return false;
  if (head.bytes[begin] == '[') return has("\"ph\"");
  return head.bytes[begin] == '{' &&
         (has("\"traceEvents\"") || has("\"distributedInfo\"") || has("\"deviceProperties\""));
}

Observed read(const std::vector<std::string>& files) {
  std::vector<RankRead> ranks;
  ranks.reserve(files.size());
  for (const std::string& file : files) ranks.push_back(read_rank(file));
  return join(std::move(ranks));
}

}  // namespace

const Format kFormat = {
    "kineto", "kineto: a torch.profiler trace (Kineto JSON, packed or not), one file a rank",
    recognises, read};

}  // namespace syncline::job::kineto
