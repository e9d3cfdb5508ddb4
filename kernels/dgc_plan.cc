// A tile is 2048 elements, what one block takes at a time; it never straddles tensors. A span is up
// to 32 neighbouring tiles of one tensor, what one block does in one launch. Every tensor has at
// least one span, an empty one too, so that somebody writes its report.
//
// A tensor's list holds its candidates, elements that may be among the largest, as index and value:
// room for 16 kept + 1024 of them, and none (the whole residual stands in for it) where more than
// one element in 32 is kept.
#include "kernels/dgc_plan.h"

#include <algorithm>
#include <string>

#include "kernels/vector_access.h"

namespace syncline::kernels {
namespace {

constexpr std::int64_t kMaxElements = 0xffffffffll;
// An H200 runs 132 x 5 blocks of the update at once: eight times as many spans even out the end,
// and a span is long enough to make its histogram's 8 KB cheap.
constexpr std::int64_t kAimedSpans = 8ll * 132 * 5;
constexpr std::int64_t kMinSpanTiles = 4;
// Residuals pile up just under the threshold: candidates from 0.95 of it on are 2 to 7 times as
// many as are sent in the median, so 16 times leaves room.
constexpr std::int64_t kListedPerKept = 16;
constexpr std::int64_t kListedAtLeast = 1024;
constexpr std::int64_t kListedBelow = 32;  // one in so many kept

Status check(const DgcTensor& tensor, std::size_t at) {
  if (tensor.elements >= 0 && tensor.elements <= kMaxElements) return {};
  return failure("dgc_plan: tensor " + std::to_string(at) + " has " +
                 std::to_string(tensor.elements) + " elements, not 0 to 4294967295");
}

std::uint32_t capacity_of(std::int64_t elements, std::int64_t kept) {
  if (kept == 0 || kept * kListedBelow > elements) return 0;
  return static_cast<std::uint32_t>(std::min(elements, kListedPerKept * kept + kListedAtLeast));
}

DgcRow row_of(const DgcTensor& tensor) {
  DgcRow row{};
  row.gradient = tensor.gradient;
  row.velocity = tensor.velocity;
  row.residual = tensor.residual;
  row.elements = static_cast<std::uint32_t>(tensor.elements);
  row.kept = static_cast<std::uint32_t>(std::min(tensor.kept, tensor.elements));
  row.capacity = capacity_of(row.elements, row.kept);
  const int shift = misalignment<4>(tensor.residual);
  row.shift = static_cast<std::uint8_t>(shift);
  row.gradient_aligned = aligned_at<4>(tensor.gradient, -shift);
  row.velocity_aligned = aligned_at<4>(tensor.velocity, -shift);
  row.residual_aligned = aligned_at<4>(tensor.residual, -shift);
  row.all_aligned = row.gradient_aligned && row.velocity_aligned && row.residual_aligned;
  const std::int64_t slots = tensor.elements == 0 ? 0 : tensor.elements + shift;
  row.tiles = static_cast<std::uint32_t>((slots + kDgcTile - 1) / kDgcTile);
  return row;
}

std::size_t lay_out(const DgcPlan& plan, void* base, DgcTables* tables) {
  WorkspaceParts parts(base);
  const auto tensors = static_cast<std::int64_t>(plan.rows.size());
  parts.next(&tables->rows, tensors);
  parts.next(&tables->states, tensors);
  parts.next(&tables->histograms, tensors * kDgcBins);
  parts.next(&tables->span_tensor, plan.spans);
  parts.next(&tables->span_counts, plan.spans);
  parts.next(&tables->tiles, plan.tiles);
  parts.next(&tables->list_indices, plan.listed);
  parts.next(&tables->list_values, plan.listed);
  tables->span_tiles = plan.span_tiles;
  return parts.used();
}

}  // namespace

Status dgc_plan(const std::vector<DgcTensor>& tensors, DgcPlan* plan) {
  DgcPlan made;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (auto status = check(tensors[i], i); !status.ok()) return status;
    DgcRow row = row_of(tensors[i]);
    row.first_tile = made.tiles;
    row.list_at = made.listed;
    row.packed_at = made.packed;
    made.tiles += row.tiles;
    made.listed += row.capacity;
    made.packed += row.kept;
    made.rows.push_back(row);
  }
  made.span_tiles = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(made.tiles / kAimedSpans, kMinSpanTiles, kDgcMaxSpanTiles));
  for (DgcRow& row : made.rows) {
    row.spans = std::max(1u, (row.tiles + made.span_tiles - 1) / made.span_tiles);
    row.first_span = static_cast<std::uint32_t>(made.spans);
    made.spans += row.spans;
    if (made.spans > 0x7fffffffll) return failure("dgc_plan: too many elements for one launch");
  }
  DgcTables unused;
  made.workspace_bytes = lay_out(made, nullptr, &unused);
  *plan = std::move(made);
  return {};
}

DgcTables dgc_tables(const DgcPlan& plan, void* base) {
  DgcTables tables;
  lay_out(plan, base, &tables);
  return tables;
}

}  // namespace syncline::kernels
