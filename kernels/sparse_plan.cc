// The plan of sparse_apply, and what its launchers refuse.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/sparse_apply.h"
#include "kernels/workspace.h"

namespace syncline::kernels {
namespace {

Status wrong(std::size_t tensor, const std::string& what) {
  return failure("sparse_plan: tensor " + std::to_string(tensor) + ": " + what);
}

Status check(const SparseTensor& tensor, std::size_t at) {
  if (tensor.elements < 0 || tensor.elements > 0xffffffffll) {
    return wrong(at, "elements is " + std::to_string(tensor.elements) + ", not 0 to 4294967295");
  }
  if (tensor.places < 0 || tensor.places > tensor.elements) {
    return wrong(at, "places is " + std::to_string(tensor.places) + " of " +
                         std::to_string(tensor.elements) + " elements");
  }
  if (tensor.places > 0 && !tensor.weight) return wrong(at, "weight is null");
  if (reinterpret_cast<std::uintptr_t>(tensor.weight) % sizeof(float) != 0) {
    return wrong(at, "weight is at no multiple of 4 bytes");
  }
  return {};
}

std::uint32_t pieces(std::uint32_t places, int each) {
  const auto size = static_cast<std::uint32_t>(each);
  return places / size + (places % size != 0 ? 1 : 0);
}

std::size_t lay_out(const SparsePlan& plan, void* base, SparseTables* tables) {
  WorkspaceParts parts(base);
  parts.next(&tables->rows, static_cast<std::int64_t>(plan.rows.size()));
  parts.next(&tables->part_tensor, plan.parts);
  parts.next(&tables->check_tensor, plan.checks);
  return parts.used();
}

}  // namespace

Status sparse_plan(const std::vector<SparseTensor>& tensors, SparsePlan* plan) {
  SparsePlan made;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const SparseTensor& tensor = tensors[i];
    if (auto status = check(tensor, i); !status.ok()) return status;
    SparseRow row{};
    row.weight = tensor.weight;
    row.elements = static_cast<std::uint32_t>(tensor.elements);
    row.places = static_cast<std::uint32_t>(tensor.places);
    row.packed_at = made.packed;
    row.first_part = static_cast<std::uint32_t>(made.parts);
    row.parts = pieces(row.places, kSparsePartPairs);
    row.first_check = static_cast<std::uint32_t>(made.checks);
    row.checks = pieces(row.places, kSparseCheckedPairs);
    made.packed += row.places;
    made.parts += row.parts;
    made.checks += row.checks;
    if (made.parts > 0x7fffffffll) return failure("sparse_plan: too many parts for one launch");
    made.rows.push_back(row);
  }
  SparseTables unused{};
  made.workspace_bytes = lay_out(made, nullptr, &unused);
  *plan = std::move(made);
  return {};
}

SparseTables sparse_tables(const SparsePlan& plan, void* base) {
  SparseTables tables{};
  lay_out(plan, base, &tables);
  return tables;
}

Status check_sparse_prepare(const SparsePlan& plan, const void* workspace,
                            std::size_t workspace_bytes) {
  return check_workspace("sparse_prepare", workspace, workspace_bytes, plan.workspace_bytes);
}

Status check_sparse_apply(const SparsePlan& plan, const SparseApply& apply) {
  if (!plan.workspace) {
    return failure("sparse_apply: the plan has no workspace: call sparse_prepare first");
  }
  if (apply.ranks < 0 || apply.ranks > kSparseMaxRanks) {
    return failure("sparse_apply: ranks is " + std::to_string(apply.ranks) + ", not 0 to 65535");
  }
  if (!std::isfinite(apply.rate)) return failure("sparse_apply: rate is not finite");
  if (!apply.rejected) return failure("sparse_apply: rejected is null");
  if (plan.packed == 0 || apply.ranks == 0) return {};
  if (!apply.indices) return failure("sparse_apply: indices is null");
  if (!apply.values) return failure("sparse_apply: values is null");
  if (apply.rank_stride < plan.packed) {
    return failure("sparse_apply: rank_stride is " + std::to_string(apply.rank_stride) +
                   ", but a rank's lists have " + std::to_string(plan.packed) + " places");
  }
  return {};
}

}  // namespace syncline::kernels
