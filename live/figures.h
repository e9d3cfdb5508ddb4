// Figures that ranks exchange: their bytes, as one machine stores them. Bytes from another rank are
// counted before they are read. Also the check of gradients' values.
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

// Returns the figures that `rank` gave. Throws MachineError unless they are whole.
template <typename T>
std::vector<T> read_figures(const std::string& bytes, const ControlChannel& channel, int rank) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() % sizeof(T) != 0) channel.broken_by(rank, "it gave half a figure");
  std::vector<T> figures(bytes.size() / sizeof(T));
  if (!figures.empty()) std::memcpy(figures.data(), bytes.data(), bytes.size());
  return figures;
}

// Returns the figures of `rank`. Throws MachineError unless there are `count`.
template <typename T>
std::vector<T> read_figures(const std::string& bytes, const ControlChannel& channel, int rank,
                            std::size_t count) {
  auto figures = read_figures<T>(bytes, channel, rank);
  if (figures.size() == count) return figures;
  channel.broken_by(rank, "it gave " + std::to_string(figures.size()) + " figures where " +
                              std::to_string(count) + " are expected");
}

// Seed of the gradients that ranks compare.
inline constexpr std::uint64_t kSampleSeed = 1;

// Returns true if an exchange gave every rank the values of the host executor. A collective call,
// with this rank's gradients after one or more periods from sample_gradients(..., seed, values).
// Integers must be equal to the last bit: rank 0 computes all ranks' results and the ranks compare
// digests. Real values may differ by rounding: every rank computes them. Outer steps build on each
// other, over `periods`; all other results are the same in each. The answer is the same on all
// ranks. Needs the memory of all ranks' gradients several times on rank 0 (real values: on all).
bool values_match(ControlChannel& channel, const Workload& workload, const plan::Plan& plan,
                  const run::RankGradients& result, std::uint64_t seed, run::SampleValues values,
                  int periods);

}  // namespace syncline::live
