// What one block does in the launches of sampled_step: sample a window, count, send.
#pragma once

#include "kernels/dgc_spans.h"
#include "kernels/sampled_threshold.h"

namespace syncline::kernels {

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

}  // namespace syncline::kernels
