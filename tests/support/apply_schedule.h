// A schedule carried out on payloads in memory, and the rules that every schedule must keep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/collective/schedule.h"

namespace syncline::test {

template <typename Number>
using Payloads = std::vector<std::vector<Number>>;  // one per member

// What stands on every member after all rounds. All transfers of a round read what stood before
// it: what they carry is copied out before any of them arrives.
template <typename Number>
Payloads<Number> apply_schedule(const collective::Schedule& schedule, Payloads<Number> payloads) {
  std::vector<std::vector<Number>> in_flight;
  for (const collective::Round& round : schedule) {
    in_flight.clear();
    for (const collective::Transfer& transfer : round) {
      const auto& source = payloads.at(static_cast<std::size_t>(transfer.from));
      in_flight.emplace_back(source.begin() + transfer.elements.begin,
                             source.begin() + transfer.elements.end);
    }
    for (std::size_t i = 0; i < round.size(); ++i) {
      const auto into =
          payloads.at(static_cast<std::size_t>(round[i].to)).begin() + round[i].elements.begin;
      const std::vector<Number>& carried = in_flight[i];
      for (std::size_t e = 0; e < carried.size(); ++e) {
        Number& element = into[static_cast<std::ptrdiff_t>(e)];
        element = round[i].add ? element + carried[e] : carried[e];
      }
    }
  }
  return payloads;
}

// The first broken rule, in words; empty if all are kept: members are in the group and do not send
// to themselves, ranges are not empty and inside the payload, and no overwrite meets another
// transfer in the same elements of the same receiver and round (the result would depend on the
// order of arrival).
inline std::string broken_rule(const collective::Schedule& schedule, int ranks,
                               std::int64_t elements) {
  for (std::size_t r = 0; r < schedule.size(); ++r) {
    collective::Round round = schedule[r];
    const std::string where = "round " + std::to_string(r) + ": ";
    for (const collective::Transfer& transfer : round) {
      if (std::min(transfer.from, transfer.to) < 0) return where + "a negative member";
      if (std::max(transfer.from, transfer.to) >= ranks) return where + "a member too high";
      if (transfer.from == transfer.to) return where + "a transfer to itself";
      if (transfer.elements.size() <= 0) return where + "an empty transfer";
      if (transfer.elements.begin < 0 || transfer.elements.end > elements) {
        return where + "a range outside the payload";
      }
    }
    // In order of receiver and begin, a transfer meets an earlier one if it begins before the
    // furthest end so far; `any` is that of all transfers and `overwrite` that of the overwriting.
    std::ranges::sort(round, {}, [](const collective::Transfer& transfer) {
      return std::pair(transfer.to, transfer.elements.begin);
    });
    int receiver = -1;
    std::int64_t any = 0;
    std::int64_t overwrite = 0;
    for (const collective::Transfer& transfer : round) {
      if (transfer.to != receiver) any = overwrite = 0;
      receiver = transfer.to;
      if (transfer.elements.begin < (transfer.add ? overwrite : any)) {
        return where + "an overwrite meets another transfer at member " + std::to_string(receiver);
      }
      any = std::max(any, transfer.elements.end);
      if (!transfer.add) overwrite = std::max(overwrite, transfer.elements.end);
    }
  }
  return "";
}

}  // namespace syncline::test
