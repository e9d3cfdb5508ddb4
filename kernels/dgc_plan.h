// What dgc_step works on, laid out once for a list of tensors: argument checks, the split into
// tiles and spans, and the places of everything in the workspace. Plain C++, no CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/host_device.h"

namespace syncline::kernels {

// A workspace: one piece of memory that holds a plan's tables, handed out part after part.
constexpr std::size_t kWorkspaceAlignment = 256;

// Every part is aligned to 256 bytes. Without memory (base is null) it only counts.
class WorkspaceParts {
 public:
  explicit WorkspaceParts(void* base) : base_(static_cast<std::byte*>(base)) {}

  template <typename T>
  void next(T** part, std::int64_t count) {
    if (base_) *part = reinterpret_cast<T*>(base_ + used_);
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    used_ += (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  }

  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

constexpr int kDgcTile = 2048;
constexpr int kDgcGroups = 2;         // groups of 4 elements a thread has of a tile
constexpr int kDgcMaxSpanTiles = 32;  // of one span
constexpr int kDgcBins = 2048;        // 11 bits: exponent and 3 bits of mantissa
constexpr std::uint32_t kPadIndex = 0xffffffffu;

// One tensor of a step. u and v of the papers are velocity and residual.
struct DgcTensor {
  const float* gradient = nullptr;
  float* velocity = nullptr;  // read and written
  float* residual = nullptr;  // read and written
  std::int64_t elements = 0;  // 0 .. 2^32 - 1
  std::int64_t kept = 0;      // how many are sent; more than there are means all
};

// How the selection of a tensor was found.
enum class DgcPath : std::uint32_t {
  kSpeculative = 1,  // 20 bytes an element: last step's threshold gave the candidates
  kExact = 2,        // 24: the residual is read once more
  kRecount = 3,      // 28: the guess was too high, nothing below it had been counted
  kWhole = 4,        // 36 (28 where all are sent): too many candidates for the list
  kNothing = 5,      // nothing was to be sent
};

struct DgcReport {
  std::uint32_t selected;   // min(kept, elements) but for elements that are not finite
  std::uint32_t held;       // 1: some element would not have been finite and kept its old values
  std::uint32_t threshold;  // bits of a magnitude: all above it was sent, and nothing below
  DgcPath path;
};

// A tensor as the kernels see it.
struct DgcRow {
  const float* gradient;
  float* velocity;
  float* residual;
  std::uint32_t elements;
  std::uint32_t kept;  // at most elements
  std::uint32_t tiles;
  std::uint32_t spans;
  std::int64_t first_tile;
  std::uint32_t first_span;
  std::uint32_t capacity;  // of its list
  std::int64_t list_at;
  std::int64_t packed_at;
  std::uint8_t shift;     // groups of 4 are counted from element -shift on
  bool gradient_aligned;  // its groups are at multiples of their bytes,
  bool velocity_aligned;  // so they are accessed at once
  bool residual_aligned;
  bool all_aligned;
};

enum class DgcSource : std::uint32_t {
  kRecount,  // no list, and the histogram does not reach down far enough
  kCollect,  // the histogram gave a lower edge: the list is to be made by reading the residual
  kList,     // the list has all that can be selected
  kWhole,    // the residual itself is the list
  kNothing,  // nothing to select
};

// What the kernels of a step tell each other about a tensor.
struct DgcTensorState {
  std::uint32_t last;    // kept from step to step: the last threshold; 0: none
  std::uint32_t listed;  // places of the list given out
  std::uint32_t done;    // spans that have finished the present kernel
  std::uint32_t held;
  DgcSource source;
  std::uint32_t settled;    // 1: threshold and ties are known
  std::uint32_t prefix;     // upper bits of the threshold: those found so far
  std::uint32_t rank;       // from 1: which of those with this prefix, from the largest down
  std::uint32_t threshold;  // sent: every key above it, and
  std::uint32_t ties;       // how many of those equal to it, the first ones
  std::uint32_t selected;
  DgcPath path;
};

struct DgcTileRecord {
  std::uint32_t start;  // in the tensor's list
  std::uint32_t count;
};

struct DgcSpanCount {
  std::uint32_t
      greater;  // than the threshold, in this span; later: in the tensor's spans before it
  std::uint32_t ties;
};

// Places of a workspace, on the device (or, in tests, on the host).
struct DgcTables {
  DgcRow* rows;
  DgcTensorState* states;
  std::uint32_t* histograms;   // kDgcBins a tensor, all 0 between kernels
  std::uint32_t* span_tensor;  // each span's tensor
  DgcSpanCount* span_counts;
  DgcTileRecord* tiles;
  std::uint32_t* list_indices;
  float* list_values;
  std::uint32_t span_tiles;
};

struct DgcPlan {
  std::vector<DgcRow> rows;
  std::uint32_t span_tiles = 1;
  std::int64_t spans = 0;
  std::int64_t tiles = 0;
  std::int64_t listed = 0;  // places of all lists
  std::int64_t packed = 0;  // sum of min(kept, elements): elements of indices and values
  std::size_t workspace_bytes = 0;
  void* workspace = nullptr;  // set by dgc_prepare
};

// Fills `plan`. Addresses are at multiples of their elements' size, and tensors do not overlap.
// Refused are more than 2^32 - 1 elements in a tensor, and more of all than one launch takes.
Status dgc_plan(const std::vector<DgcTensor>& tensors, DgcPlan* plan);

// The tables of a plan in a workspace at `base` (a multiple of 256).
DgcTables dgc_tables(const DgcPlan& plan, void* base);

}  // namespace syncline::kernels
