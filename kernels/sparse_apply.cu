// A pair is 8 bytes read and one 32-byte sector of weights read and written: 72 bytes. Floor on an
// H200 at 4.8 TB/s for 25.5 M, 110 M and 340 M weights at 1 in 1000: 8 ranks (0.58 bytes per
// weight) 3.1, 13 and 41 microseconds, 32 ranks (2.3) 12, 53 and 163. Two launches for all tensors.
//
// A tensor's weights are cut at every 128th index of rank 0 into parts, one block each. The block
// finds the part's bounds in each rank's rising list by binary search, and applies one rank after
// the other with a barrier between them. A list has an index at most once, so one rank's pairs
// never collide.
//
// Lists are checked before the first write. *rejected is set, and no weight of any tensor changes,
// for an index that is not less than the number of elements (pads aside), one that does not rise, a
// pair after a pad or a value that is not finite.
#include "kernels/sparse_apply.h"

#include <string>
#include <utility>

#include "kernels/dgc_step.h"
#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

constexpr int kPartPairs = 128;      // rank 0's pairs in one part
constexpr int kCheckedPairs = 1024;  // pairs that a block checks
constexpr int kMaxRanks = 65535;
constexpr int kRanksAtOnce = 8;  // their pairs are loaded ahead

struct SparseRow {
  float* weight;
  std::uint32_t elements;
  std::uint32_t places;
  std::int64_t packed_at;  // offset of this tensor's list among all lists of a rank
  std::uint32_t first_part;
  std::uint32_t parts;
  std::uint32_t first_check;  // blocks that check the lists, for one rank
  std::uint32_t checks;
};

struct SparseTables {
  SparseRow* rows;
  std::uint32_t* part_tensor;
  std::uint32_t* check_tensor;
};

struct SparseShared {
  std::uint32_t begin[kRanksAtOnce];  // indices in the current ranks' lists
  std::uint32_t end[kRanksAtOnce];
};

// One rank's list of one tensor.
struct SparseList {
  const std::uint32_t* indices;
  const float* values;
};

SYNCLINE_BLOCK_ALGORITHM SparseList list_of_rank(const SparseApply& apply, const SparseRow& row,
                                                 int rank) {
  const std::int64_t at = rank * apply.rank_stride + row.packed_at;
  return {apply.indices + at, apply.values + at};
}

// Returns the first place with an index of at least `index`. Pads are above all indices.
SYNCLINE_BLOCK_ALGORITHM std::uint32_t place_of(const std::uint32_t* indices, std::uint32_t places,
                                                std::uint32_t index) {
  std::uint32_t low = 0;
  std::uint32_t high = places;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (indices[middle] < index) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Returns the beginning of a part: rank 0's index, or the end of the tensor if it has none there.
SYNCLINE_BLOCK_ALGORITHM std::uint32_t part_edge(const SparseApply& apply, const SparseRow& row,
                                                 std::uint32_t part) {
  if (part == 0) return 0;
  if (part >= row.parts) return row.elements;
  const std::uint32_t index = list_of_rank(apply, row, 0).indices[part * kPartPairs];
  return index < row.elements ? index : row.elements;
}

using SparseRows = TensorTable<SparseRow, 600>;
static_assert(sizeof(SparseRows) + sizeof(SparseTables) + 64 <= kArgumentBytes);

// Writes one tensor's row, and the tensor's number at its parts and checks.
__global__ void __launch_bounds__(kBlockThreads)
    sparse_prepare_kernel(SparseTables tables, const __grid_constant__ SparseRows rows,
                          std::uint32_t before) {
  const SparseRow& row = rows.entries[blockIdx.x];
  const std::uint32_t tensor = before + blockIdx.x;
  KernelBlock block;
  block.each([&](int thread) {
    const auto first = static_cast<std::uint32_t>(thread);
    for (std::uint32_t i = first; i < row.parts; i += kBlockThreads) {
      tables.part_tensor[row.first_part + i] = tensor;
    }
    for (std::uint32_t i = first; i < row.checks; i += kBlockThreads) {
      tables.check_tensor[row.first_check + i] = tensor;
    }
    if (thread == 0) tables.rows[tensor] = row;
  });
}

// Returns true if the pair is valid, as far as it and the one before it show.
SYNCLINE_BLOCK_ALGORITHM bool pair_is_good(const SparseRow& row, const SparseList& list,
                                           std::uint32_t place) {
  const std::uint32_t index = list.indices[place];
  if (index == kPadIndex) return true;
  if (index >= row.elements || !is_finite(list.values[place])) return false;
  return place == 0 || list.indices[place - 1] < index;  // false after a pad, the largest index
}

// Checks a piece of one rank's list.
__global__ void __launch_bounds__(kBlockThreads)
    sparse_check_kernel(SparseTables tables, SparseApply apply) {
  const SparseRow& row = tables.rows[tables.check_tensor[blockIdx.x]];
  const SparseList list = list_of_rank(apply, row, static_cast<int>(blockIdx.y));
  const std::uint32_t first = (blockIdx.x - row.first_check) * kCheckedPairs;
  KernelBlock block;
  block.each([&](int thread) {
    bool good = true;
    for (int i = 0; i < kCheckedPairs / kBlockThreads; ++i) {
      const std::int64_t place = static_cast<std::int64_t>(first) + i * kBlockThreads + thread;
      if (place >= static_cast<std::int64_t>(row.places)) break;
      good = pair_is_good(row, list, static_cast<std::uint32_t>(place)) && good;
    }
    if (!good) *apply.rejected = 1;  // several threads may write it, all the same
  });
}

// Updates one part of a tensor's weights by all ranks' pairs, in rank order. Several ranks'
// pairs are loaded ahead.
__global__ void __launch_bounds__(kBlockThreads, 6)
    sparse_apply_kernel(SparseTables tables, SparseApply apply) {
  __shared__ SparseShared shared;
  KernelBlock block;
  if (*apply.rejected != 0) return;
  const SparseRow& row = tables.rows[tables.part_tensor[blockIdx.x]];
  const std::uint32_t part = blockIdx.x - row.first_part;
  const std::uint32_t low = part_edge(apply, row, part);
  const std::uint32_t high = part_edge(apply, row, part + 1);
  struct Ahead {
    std::uint32_t index[kRanksAtOnce];  // kPadIndex: none
    float value[kRanksAtOnce];
  };
  for (int base = 0; base < apply.ranks; base += kRanksAtOnce) {
    const int ranks = apply.ranks - base < kRanksAtOnce ? apply.ranks - base : kRanksAtOnce;
    block.each([&](int thread) {
      const int rank = thread % kRanksAtOnce;
      if (thread >= 2 * kRanksAtOnce || rank >= ranks) return;
      const SparseList list = list_of_rank(apply, row, base + rank);
      const bool begins = thread < kRanksAtOnce;
      const std::uint32_t place = place_of(list.indices, row.places, begins ? low : high);
      (begins ? shared.begin : shared.end)[rank] = place;
    });
    KernelBlock::Each<Ahead> ahead;
    block.each([&](int thread) {
      for (int rank = 0; rank < kRanksAtOnce; ++rank) {
        ahead[thread].index[rank] = kPadIndex;
        ahead[thread].value[rank] = 0.0f;
        if (rank >= ranks) continue;
        const std::uint32_t pairs = shared.end[rank] - shared.begin[rank];
        if (static_cast<std::uint32_t>(thread) >= pairs) continue;
        const SparseList list = list_of_rank(apply, row, base + rank);
        const std::uint32_t place = shared.begin[rank] + static_cast<std::uint32_t>(thread);
        ahead[thread].index[rank] = list.indices[place];
        ahead[thread].value[rank] = list.values[place];
      }
    });
    for (int rank = 0; rank < kRanksAtOnce; ++rank) {
      if (rank >= ranks) break;
      block.each([&](int thread) {
        const std::uint32_t index = ahead[thread].index[rank];
        if (index == kPadIndex) return;
        row.weight[index] = row.weight[index] - apply.rate * ahead[thread].value[rank];
        // The pairs beyond the number of threads are not loaded ahead.
        const SparseList list = list_of_rank(apply, row, base + rank);
        const std::uint32_t pairs = shared.end[rank] - shared.begin[rank];
        for (std::uint32_t i = static_cast<std::uint32_t>(thread) + kBlockThreads; i < pairs;
             i += kBlockThreads) {
          const std::uint32_t place = shared.begin[rank] + i;
          const std::uint32_t further = list.indices[place];
          row.weight[further] = row.weight[further] - apply.rate * list.values[place];
        }
      });
    }
  }
}

std::uint32_t pieces(std::uint32_t places, int each) {
  const auto size = static_cast<std::uint32_t>(each);
  return places / size + (places % size != 0 ? 1 : 0);
}

// Returns the tables of a plan in a workspace at `base`; sets `bytes` to the workspace's size.
SparseTables tables_of(const SparsePlan& plan, void* base, std::size_t* bytes) {
  SparseTables tables{};
  *bytes = 0;
  place_part(base, bytes, static_cast<std::int64_t>(plan.tensors.size()), &tables.rows);
  place_part(base, bytes, plan.parts, &tables.part_tensor);
  place_part(base, bytes, plan.checks, &tables.check_tensor);
  return tables;
}

// Returns the rows of a plan's tensors; sets its counts.
std::vector<SparseRow> rows_of(SparsePlan* plan) {
  plan->parts = plan->checks = plan->packed = 0;
  std::vector<SparseRow> rows;
  for (const SparseTensor& tensor : plan->tensors) {
    SparseRow& row = rows.emplace_back();
    row.weight = tensor.weight;
    row.elements = static_cast<std::uint32_t>(tensor.elements);
    row.places = static_cast<std::uint32_t>(tensor.places);
    row.packed_at = plan->packed;
    row.first_part = static_cast<std::uint32_t>(plan->parts);
    row.parts = pieces(row.places, kPartPairs);
    row.first_check = static_cast<std::uint32_t>(plan->checks);
    row.checks = pieces(row.places, kCheckedPairs);
    plan->packed += row.places;
    plan->parts += row.parts;
    plan->checks += row.checks;
  }
  return rows;
}

}  // namespace

Status sparse_plan(const std::vector<SparseTensor>& tensors, SparsePlan* plan) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const SparseTensor& tensor = tensors[i];
    if (tensor.elements < 0 || tensor.elements > 0xffffffffll || tensor.places > tensor.elements) {
      return failure("sparse_plan: tensor " + std::to_string(i) + ": " +
                     std::to_string(tensor.places) + " places of " +
                     std::to_string(tensor.elements) + " elements, the limit is 2^32 - 1");
    }
  }
  SparsePlan made;
  made.tensors = tensors;
  rows_of(&made);
  if (made.parts > 0x7fffffffll) return failure("sparse_plan: too many parts for one launch");
  tables_of(made, nullptr, &made.workspace_bytes);
  *plan = std::move(made);
  return {};
}

Status sparse_prepare(SparsePlan* plan, void* workspace, cudaStream_t stream) {
  const std::vector<SparseRow> rows = rows_of(plan);
  const SparseTables tables = tables_of(*plan, workspace, &plan->workspace_bytes);
  plan->workspace = workspace;
  return in_tables<SparseRows>(rows,
                               [&](const SparseRows& some, LaunchGrid grid, std::uint32_t first) {
                                 return launch("sparse_prepare_kernel", sparse_prepare_kernel, grid,
                                               stream, tables, some, first);
                               });
}

Status sparse_apply(const SparsePlan& plan, const SparseApply& apply, cudaStream_t stream) {
  if (apply.ranks > kMaxRanks) return failure("sparse_apply: more than 65535 ranks");
  auto status = clear(apply.rejected, sizeof *apply.rejected, stream);
  if (!status.ok() || plan.packed == 0 || apply.ranks == 0) return status;
  std::size_t bytes = 0;
  const SparseTables tables = tables_of(plan, plan.workspace, &bytes);
  const auto pieces = static_cast<unsigned>(plan.checks);
  status = launch("sparse_check_kernel", sparse_check_kernel,
                  {pieces, static_cast<unsigned>(apply.ranks)}, stream, tables, apply);
  if (!status.ok()) return status;
  return launch("sparse_apply_kernel", sparse_apply_kernel, {static_cast<unsigned>(plan.parts)},
                stream, tables, apply);
}

}  // namespace syncline::kernels
