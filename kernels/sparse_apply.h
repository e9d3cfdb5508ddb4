// The sparse update of DGC: every rank's (index, value) lists go into the weights without a dense
// gradient,
//
//   for each rank r in order, for each of its pairs (i, v):   w_i = w_i - rate v
//
// with the product and the difference rounded by themselves, in fp32. Momentum is in the values
// already, so rate is learning rate / ranks. The same bits in every run, and on every rank that
// has the same lists; kernels/reference/dgc.h is the same on the host.
//
// A pair is 8 bytes read and one 32-byte sector of weights read and written: 72 bytes. Floor on an
// H200 at 4.8 TB/s for 25.5 M, 110 M and 340 M weights at 1 in 1000: 8 ranks (0.58 bytes a
// weight) 3.1, 13 and 41 microseconds, 32 ranks (2.3) 12, 53 and 163. Two launches for all tensors.
//
// How: a tensor's weights are cut where every 128th index of rank 0 stands, one block a part. The
// block finds by binary search where each rank's rising list enters and leaves the part, and takes
// the ranks one after the other with a barrier between them. A list has an index at most once, so
// inside a rank nothing collides.
//
// Lists are looked through before anything is written: an index that is not less than the number of
// elements (and no pad), one that does not rise, a pair behind a pad or a value that is not finite
// sets *rejected, and then no weight of any tensor changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/host_device.h"

namespace syncline::kernels {

constexpr int kSparsePartPairs = 128;      // of rank 0 in one part
constexpr int kSparseCheckedPairs = 1024;  // that a block looks through
constexpr int kSparseMaxRanks = 65535;

struct SparseTensor {
  float* weight = nullptr;
  std::int64_t elements = 0;  // 0 .. 2^32 - 1
  std::int64_t places = 0;    // of one rank's list, pads included: min(kept, elements) of dgc_step
};

struct SparseRow {
  float* weight;
  std::uint32_t elements;
  std::uint32_t places;
  std::int64_t packed_at;  // where a rank's list of this tensor begins among all its lists
  std::uint32_t first_part;
  std::uint32_t parts;
  std::uint32_t first_check;  // blocks that look through the lists, for one rank
  std::uint32_t checks;
};

struct SparseTables {
  SparseRow* rows;
  std::uint32_t* part_tensor;
  std::uint32_t* check_tensor;
};

struct SparsePlan {
  std::vector<SparseRow> rows;
  std::int64_t parts = 0;
  std::int64_t checks = 0;
  std::int64_t packed = 0;  // sum of places
  std::size_t workspace_bytes = 0;
  void* workspace = nullptr;  // set by sparse_prepare
};

struct SparseApply {
  int ranks = 0;
  const std::uint32_t* indices = nullptr;  // rank r's begin at r * rank_stride
  const float* values = nullptr;           // the same
  std::int64_t rank_stride = 0;            // elements, at least the plan's `packed`
  float rate = 0;
  std::uint32_t* rejected = nullptr;  // on the device: 0, or 1 if a list was refused
};

Status sparse_plan(const std::vector<SparseTensor>& tensors, SparsePlan* plan);
SparseTables sparse_tables(const SparsePlan& plan, void* base);

// Once for a list of tensors: writes its tables into `workspace`, on the device, at a multiple of
// 256 bytes.
Status sparse_prepare(SparsePlan* plan, void* workspace, cudaStream_t stream);

Status sparse_apply(const SparsePlan& plan, const SparseApply& apply, cudaStream_t stream);

}  // namespace syncline::kernels
