// Ranks as threads of a test: each has a control channel of its own, as processes would.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "live/control_channel.h"
#include "tests/support/scratch.h"

namespace syncline::test {

// What each rank's body threw; empty: nothing.
using Failures = std::vector<std::string>;

inline live::RankEnvironment place_at(const std::string& file, int rank, int ranks) {
  live::RankEnvironment place;
  place.rank = rank;
  place.ranks = ranks;
  place.file = file;
  return place;
}

// Runs `body` on each rank of one run.
inline Failures run_ranks(int ranks, const std::function<void(live::ControlChannel&)>& body,
                          std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  const Scratch scratch;
  const std::string file = scratch.path("meet");
  Failures failures(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        live::ControlChannelSettings settings;
        settings.timeout = timeout;
        live::ControlChannel channel(place_at(file, rank, ranks), settings);
        body(channel);
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return failures;
}

}  // namespace syncline::test
