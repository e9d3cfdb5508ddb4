#include "kernels/sampled_threshold.h"

#include <string>

#include "kernels/dgc_spans.h"
#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

SYNCLINE_HOST_DEVICE inline SampledRow sampled_row(const DgcRow& row) {
  const std::uint32_t rank = row.kept / 2 < 32 ? row.kept / 2 : 32;
  const float proportion = static_cast<float>(row.kept) / static_cast<float>(rank);
  const auto half = static_cast<std::uint32_t>(proportion / 2);
  const std::uint32_t windows = half < kSampleWindows ? half : kSampleWindows;
  const std::uint32_t blocks =
      row.elements / 512 < kSampleBlocks ? row.elements / 512 : kSampleBlocks;
  return {rank, static_cast<std::uint32_t>(static_cast<float>(row.elements) / proportion), windows,
          row.elements / windows, blocks};
}

// The rank-th largest magnitude of a window, by three rounds of counting in shared memory; 0 where
// fewer are finite.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM float ranked_key(Block& block, DgcShared& shared, const float* window,
                                          std::uint32_t size, std::uint32_t rank) {
  std::uint32_t prefix = 0;
  clear_histogram(block, shared);
  for (int shift = 20; shift >= 0; shift -= 10) {
    block.each([&](int thread) {
      for (std::uint32_t i = static_cast<std::uint32_t>(thread); i < size; i += kBlockThreads) {
        const std::uint32_t key = key_of(window[i]);
        if (key == kNoKey) continue;
        const bool first_round = shift == 20;
        if (!first_round && (key >> (shift + 10)) != prefix) continue;
        const std::uint32_t bin = first_round ? key >> 20 : (key >> shift) & 1023u;
        Block::fetch_add(&shared.histogram[bin], 1);
      }
    });
    if (find_bin(block, shared, shared.histogram, rank) < rank) return 0.0f;
    prefix = shift == 20 ? shared.bin : (prefix << 10) | shared.bin;
    rank -= shared.above;
  }
  return float_of(prefix);
}

// Block `number` of a tensor samples a window and fills its share of the message with pads; the
// tensor's last one takes the mean.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void sample_window(Block& block, DgcShared& shared,
                                            const DgcTables& tables, const SampledTables& sampled,
                                            const DgcStep& step, std::uint32_t tensor,
                                            std::uint32_t number) {
  const DgcRow& row = tables.rows[tensor];
  const SampledRow shape = sampled_row(row);
  block.each([&](int thread) {
    const std::int64_t first = static_cast<std::int64_t>(number) * kBlockThreads + thread;
    for (std::int64_t at = first; at < static_cast<std::int64_t>(row.kept);
         at += static_cast<std::int64_t>(kSampleWindows) * kBlockThreads) {
      step.indices[row.packed_at + at] = kPadIndex;
      step.values[row.packed_at + at] = -1.0f;
    }
    if (number == 0 && thread == 0) {
      step.reports[tensor] = {0, 0, 0, dgc_skips(step) ? DgcPath::kSkipped : DgcPath::kSampled};
    }
  });
  if (dgc_skips(step) || number >= shape.windows) return;
  float* samples = sampled.samples + static_cast<std::int64_t>(tensor) * kSampleWindows;
  const float* window = row.residual + static_cast<std::int64_t>(number) * shape.stride;
  const float sample = ranked_key(block, shared, window, shape.window, shape.rank);
  block.each([&](int thread) {
    if (thread == 0) samples[number] = sample;
  });
  if (!block.last_of(&tables.states[tensor].done, shape.windows)) return;
  block.each([&](int thread) {
    if (thread != 0) return;
    float sum = 0.0f;
    for (std::uint32_t i = 0; i < shape.windows; ++i) sum = sum + samples[i];
    sampled.thresholds[tensor] = sum / static_cast<float>(shape.windows);
  });
}

SYNCLINE_HOST_DEVICE inline std::uint32_t* thread_offset(const SampledTables& sampled,
                                                         std::uint32_t tensor, std::uint32_t number,
                                                         int thread) {
  const std::int64_t block = static_cast<std::int64_t>(tensor) * kSampleBlocks + number;
  return &sampled.offsets[block * kBlockThreads + thread];
}

// How many of at least the threshold each thread has; offsets inside the block, then of the blocks.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void sampled_count_block(Block& block, const DgcTables& tables,
                                                  const SampledTables& sampled, const DgcStep& step,
                                                  std::uint32_t tensor, std::uint32_t number) {
  if (dgc_skips(step)) return;
  const DgcRow& row = tables.rows[tensor];
  const SampledRow shape = sampled_row(row);
  if (number >= shape.blocks) return;
  const float threshold = sampled.thresholds[tensor];
  typename Block::template Each<std::uint32_t> counts;
  block.each([&](int thread) {
    const std::int64_t stride = static_cast<std::int64_t>(shape.blocks) * kBlockThreads;
    std::uint32_t count = 0;
    for (std::int64_t i = static_cast<std::int64_t>(number) * kBlockThreads + thread;
         i < static_cast<std::int64_t>(row.elements); i += stride) {
      const std::uint32_t key = key_of(row.residual[i]);
      count += key != kNoKey && key >= bits_of(threshold) ? 1 : 0;
    }
    counts[thread] = count;
  });
  const std::uint32_t total = block.exclusive_sum(counts);
  std::uint32_t* blocks = sampled.block_counts + static_cast<std::int64_t>(tensor) * kSampleBlocks;
  block.each([&](int thread) {
    *thread_offset(sampled, tensor, number, thread) = counts[thread];
    if (thread == 0) blocks[number] = total;
  });
  if (!block.last_of(&tables.states[tensor].done, shape.blocks)) return;
  block.each([&](int thread) {
    counts[thread] = static_cast<std::uint32_t>(thread) < shape.blocks ? blocks[thread] : 0;
  });
  block.exclusive_sum(counts);
  block.each([&](int thread) {
    if (static_cast<std::uint32_t>(thread) < shape.blocks) blocks[thread] = counts[thread];
    if (thread != 0) return;
    DgcReport& report = step.reports[tensor];
    report.held = tables.states[tensor].held;
    report.threshold = bits_of(threshold);
    tables.states[tensor].held = 0;
    tables.states[tensor].last = 0;  // an exact step that follows guesses nothing
  });
}

template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void sampled_send_block(Block& block, const DgcTables& tables,
                                                 const SampledTables& sampled, const DgcStep& step,
                                                 std::uint32_t tensor, std::uint32_t number) {
  if (dgc_skips(step)) return;
  const DgcRow& row = tables.rows[tensor];
  const SampledRow shape = sampled_row(row);
  if (number >= shape.blocks) return;
  const std::uint32_t threshold = bits_of(sampled.thresholds[tensor]);
  const std::uint32_t before =
      sampled.block_counts[static_cast<std::int64_t>(tensor) * kSampleBlocks + number];
  typename Block::template Each<std::uint32_t> sent;
  block.each([&](int thread) {
    const std::int64_t stride = static_cast<std::int64_t>(shape.blocks) * kBlockThreads;
    const std::uint32_t first = before + *thread_offset(sampled, tensor, number, thread);
    std::uint32_t place = first;
    for (std::int64_t i = static_cast<std::int64_t>(number) * kBlockThreads + thread;
         i < static_cast<std::int64_t>(row.elements) && place < row.kept; i += stride) {
      const float value = row.residual[i];
      const std::uint32_t key = key_of(value);
      if (key == kNoKey || key <= threshold) continue;
      step.indices[row.packed_at + place] = static_cast<std::uint32_t>(i);
      step.values[row.packed_at + place] = value;
      row.residual[i] = 0.0f;
      row.velocity[i] = 0.0f;
      ++place;
    }
    sent[thread] = place - first;
  });
  const std::uint32_t total = block.exclusive_sum(sent);
  block.each([&](int thread) {
    if (thread == 0 && total > 0) Block::fetch_add(&step.reports[tensor].selected, total);
  });
}

// Grids of (windows or blocks, tensors): those that a tensor does not need end at once.

__global__ void __launch_bounds__(kBlockThreads)
    sampled_window_kernel(DgcTables tables, SampledTables sampled, DgcStep step) {
  __shared__ DgcShared shared;
  KernelBlock block;
  sample_window(block, shared, tables, sampled, step, blockIdx.y, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    sampled_count_kernel(DgcTables tables, SampledTables sampled, DgcStep step) {
  KernelBlock block;
  sampled_count_block(block, tables, sampled, step, blockIdx.y, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    sampled_send_kernel(DgcTables tables, SampledTables sampled, DgcStep step) {
  KernelBlock block;
  sampled_send_block(block, tables, sampled, step, blockIdx.y, blockIdx.x);
}

std::size_t lay_out(const SampledPlan& sampled, void* base, SampledTables* tables) {
  const auto tensors = static_cast<std::int64_t>(sampled.tensors);
  WorkspaceParts parts(base);
  parts.next(&tables->samples, tensors * kSampleWindows);
  parts.next(&tables->thresholds, tensors);
  parts.next(&tables->block_counts, tensors * kSampleBlocks);
  parts.next(&tables->offsets, tensors * kSampleBlocks * 256);
  return parts.used();
}

}  // namespace

Status sampled_plan(const DgcPlan& plan, SampledPlan* sampled) {
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const DgcRow& row = plan.rows[i];
    const std::string tensor = "sampled_plan: tensor " + std::to_string(i);
    if (row.elements < 16384) {
      return failure(tensor + ": has " + std::to_string(row.elements) +
                     " elements, sampling needs 16384");
    }
    if (row.kept < 2) {
      return failure(tensor + ": kept is " + std::to_string(row.kept) + ", sampling needs 2");
    }
  }
  if (plan.rows.size() > 65535) return failure("sampled_plan: more than 65535 tensors");
  SampledPlan made;
  made.tensors = plan.rows.size();
  SampledTables unused{};
  made.workspace_bytes = lay_out(made, nullptr, &unused);
  *sampled = made;
  return {};
}

SampledTables sampled_tables(const SampledPlan& sampled, void* base) {
  SampledTables tables{};
  lay_out(sampled, base, &tables);
  return tables;
}

Status sampled_step(const DgcPlan& plan, const SampledPlan& sampled, void* workspace,
                    const DgcStep& step, cudaStream_t stream) {
  Status status;
  if (plan.rows.empty()) return status;
  if (status = launch_dgc_update(plan, step, false, stream); !status.ok()) return status;
  const DgcTables tables = dgc_tables(plan, plan.workspace);
  const SampledTables room = sampled_tables(sampled, workspace);
  const auto tensors = static_cast<unsigned>(plan.rows.size());
  const auto next = [&](const char* name, auto kernel, unsigned pieces) {
    if (status.ok()) {
      status = launch(name, kernel, {pieces, tensors}, stream, tables, room, step);
    }
  };
  next("sampled_window_kernel", sampled_window_kernel, kSampleWindows);
  next("sampled_count_kernel", sampled_count_kernel, kSampleBlocks);
  next("sampled_send_kernel", sampled_send_kernel, kSampleBlocks);
  return status;
}

}  // namespace syncline::kernels
