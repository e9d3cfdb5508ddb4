// Figures that ranks give each other: their bytes, as one machine has them. What comes from another
// rank is counted before it is read. And whether their values are right.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "core/executor.h"
#include "core/run/payload.h"
#include "core/run/sample_gradients.h"
#include "live/control_channel.h"

namespace syncline::live {

template <typename T>
std::string bytes_of(const std::vector<T>& figures) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::string bytes(figures.size() * sizeof(T), '\0');
  if (!figures.empty()) std::memcpy(bytes.data(), figures.data(), bytes.size());
  return bytes;
}

// What `rank` gave. Throws MachineError where the bytes are no whole number of figures.
template <typename T>
std::vector<T> figures_in(const std::string& bytes, const ControlChannel& channel, int rank) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() % sizeof(T) != 0) channel.broken_by(rank, "it gave half a figure");
  std::vector<T> figures(bytes.size() / sizeof(T));
  if (!figures.empty()) std::memcpy(figures.data(), bytes.data(), bytes.size());
  return figures;
}

// Returns the same, where it must be so many.
template <typename T>
std::vector<T> figures_in(const std::string& bytes, const ControlChannel& channel, int rank,
                          std::size_t count) {
  auto figures = figures_in<T>(bytes, channel, rank);
  if (figures.size() == count) return figures;
  channel.broken_by(rank, "it gave " + std::to_string(figures.size()) + " figures where " +
                              std::to_string(count) + " are expected");
}

// Of the gradients that ranks compare.
inline constexpr std::uint64_t kSampleSeed = 1;

// Returns whether an exchange left on every rank what the host executor says it should. Called on
// all ranks together, with this rank's gradients after one or more periods from
// sample_gradients(..., seed, values). Integers must be equal to the last bit: rank 0 computes all
// ranks' results and the ranks compare digests. Real values may differ by rounding: every rank
// computes them. Outer steps follow one from the other, over so many periods; all else comes out
// the same in each. The answer is the same everywhere. Costs rank 0 (with real values: every rank)
// the memory of all ranks' gradients several times over.
bool values_match(ControlChannel& channel, const Workload& workload, const plan::Plan& plan,
                  const run::RankGradients& result, std::uint64_t seed, run::SampleValues values,
                  int periods);

}  // namespace syncline::live
