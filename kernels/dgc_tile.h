// The element math of DGC, and what one block does with one tile: update, count, list.
#pragma once

#include "kernels/block.h"
#include "kernels/dgc_plan.h"
#include "kernels/dgc_step.h"
#include "kernels/vector_access.h"

namespace syncline::kernels {

// A magnitude as an unsigned number: the bits without the sign order as the magnitudes do. What is
// not finite has no key.
constexpr std::uint32_t kKeyEnd = 0x7f800000u;  // one past the key of the largest float
constexpr std::uint32_t kNoKey = 0xffffffffu;

SYNCLINE_HOST_DEVICE inline std::uint32_t key_of(float value) {
  const std::uint32_t magnitude = bits_of(value) & 0x7fffffffu;
  return magnitude < kKeyEnd ? magnitude : kNoKey;
}

// A key in [from, kKeyEnd).
SYNCLINE_HOST_DEVICE inline bool reaches(std::uint32_t key, std::uint32_t from) {
  return key >= from && key < kKeyEnd;
}

struct DgcElement {
  float velocity;
  float residual;
};

template <bool kNesterov, bool kDecay>
SYNCLINE_HOST_DEVICE inline DgcElement dgc_element(float gradient, DgcElement old, float weight,
                                                   float momentum, float scale, float decay) {
  float corrected = scale * gradient;
  if constexpr (kDecay) corrected = corrected + decay * weight;
  if constexpr (kNesterov) {
    const float velocity = momentum * (old.velocity + corrected);
    return {velocity, (old.residual + velocity) + corrected};
  } else {
    const float velocity = momentum * old.velocity + corrected;
    return {velocity, old.residual + velocity};
  }
}

struct DgcShared {
  std::uint32_t histogram[kDgcBins];
  std::uint32_t tile_first[kDgcMaxSpanTiles];  // of a span's items, the first in each tile
  std::uint32_t tile_start[kDgcMaxSpanTiles];  // where they stand in the list
  std::uint32_t start;
  std::uint32_t bin;
  std::uint32_t above;
  std::uint32_t in_bin;
};

// Residuals of one thread in one tile: groups of 4 that follow each other at 4 * kBlockThreads.
struct DgcThreadTile {
  float residual[kDgcGroups][4];
};

// The element that comes first in a thread's group; it may lie before the tensor's first.
SYNCLINE_HOST_DEVICE inline std::int64_t group_first(const DgcRow& row, std::uint32_t tile,
                                                     int group, int thread) {
  return static_cast<std::int64_t>(tile) * kDgcTile + (group * kBlockThreads + thread) * 4 -
         row.shift;
}

SYNCLINE_HOST_DEVICE inline bool inside(const DgcRow& row, std::int64_t index) {
  return index >= 0 && index < static_cast<std::int64_t>(row.elements);
}

// Whether all groups a thread has of a tile are whole and can be accessed at once.
SYNCLINE_HOST_DEVICE inline bool whole_groups(const DgcRow& row, std::uint32_t tile, int thread) {
  return row.all_aligned && group_first(row, tile, 0, thread) >= 0 &&
         group_first(row, tile, kDgcGroups - 1, thread) + 4 <=
             static_cast<std::int64_t>(row.elements);
}

SYNCLINE_HOST_DEVICE inline void load_residuals(const DgcRow& row, std::uint32_t tile, int thread,
                                                DgcThreadTile& to) {
  if (whole_groups(row, tile, thread)) {
    for (int group = 0; group < kDgcGroups; ++group) {
      load_vector<Reuse::kKeep>(row.residual + group_first(row, tile, group, thread),
                                to.residual[group]);
    }
    return;
  }
  for (int group = 0; group < kDgcGroups; ++group) {
    load_group<Reuse::kKeep>(row.residual, group_first(row, tile, group, thread), row.elements,
                             row.residual_aligned, to.residual[group]);
  }
}

// What a thread reads of a tile before it writes any of it.
template <bool kDecay>
struct DgcThreadInput {
  float gradient[kDgcGroups][4];
  float velocity[kDgcGroups][4];
  float weight[kDecay ? kDgcGroups : 1][4];
};

// The usual case has no branch between its loads: all of them are in flight together.
template <typename Gradient, bool kDecay>
SYNCLINE_HOST_DEVICE inline void load_input(const DgcRow& row, std::uint32_t tile, int thread,
                                            bool whole, DgcThreadInput<kDecay>& to,
                                            DgcThreadTile& residuals) {
  const auto* gradient = static_cast<const Gradient*>(row.gradient);
  const float* velocity = row.velocity;
  const float* residual = row.residual;
  const float* weight = row.weight;
  if (whole) {
    const std::int64_t first_of_all = group_first(row, tile, 0, thread);
    for (int group = 0; group < kDgcGroups; ++group) {
      const std::int64_t first = first_of_all + group * (4 * kBlockThreads);
      load_vector<Reuse::kStream>(gradient + first, to.gradient[group]);
      load_vector<Reuse::kStream>(velocity + first, to.velocity[group]);
      load_vector<Reuse::kStream>(residual + first, residuals.residual[group]);
      if constexpr (kDecay) load_vector<Reuse::kStream>(weight + first, to.weight[group]);
    }
    return;
  }
  for (int group = 0; group < kDgcGroups; ++group) {
    const std::int64_t first = group_first(row, tile, group, thread);
    load_group<Reuse::kStream>(gradient, first, row.elements, row.gradient_aligned,
                               to.gradient[group]);
    load_group<Reuse::kStream>(velocity, first, row.elements, row.velocity_aligned,
                               to.velocity[group]);
    load_group<Reuse::kStream>(residual, first, row.elements, row.residual_aligned,
                               residuals.residual[group]);
    if constexpr (kDecay) {
      load_group<Reuse::kStream>(weight, first, row.elements, row.weight_aligned, to.weight[group]);
    }
  }
}

// u and v of a thread's elements, in place.
template <typename Gradient, bool kNesterov, bool kDecay>
SYNCLINE_HOST_DEVICE inline void update_elements(const DgcRow& row, const DgcStep& step,
                                                 float scale, std::uint32_t tile, int thread,
                                                 std::uint32_t* held, DgcThreadTile& to) {
  const bool whole = whole_groups(row, tile, thread);
  DgcThreadInput<kDecay> input;
  load_input<Gradient>(row, tile, thread, whole, input, to);
  bool any_held = false;
  for (int group = 0; group < kDgcGroups; ++group) {
    for (int i = 0; i < 4; ++i) {
      const DgcElement old{input.velocity[group][i], to.residual[group][i]};
      const float weight = input.weight[kDecay ? group : 0][kDecay ? i : 0];
      const DgcElement next = dgc_element<kNesterov, kDecay>(
          input.gradient[group][i], old, weight, step.momentum, scale, step.weight_decay);
      // Where u' is not finite, v' is not either.
      const bool good = is_finite(next.residual);
      any_held = any_held || !good;
      input.velocity[group][i] = good ? next.velocity : old.velocity;
      to.residual[group][i] = good ? next.residual : old.residual;
    }
  }
  for (int group = 0; group < kDgcGroups; ++group) {
    const std::int64_t first = group_first(row, tile, group, thread);
    if (whole) {
      store_vector<Reuse::kStream>(row.velocity + first, input.velocity[group]);
      store_vector<Reuse::kKeep>(row.residual + first, to.residual[group]);
    } else {
      store_group<Reuse::kStream>(row.velocity, first, row.elements, row.velocity_aligned,
                                  input.velocity[group]);
      store_group<Reuse::kKeep>(row.residual, first, row.elements, row.residual_aligned,
                                to.residual[group]);
    }
  }
  if (any_held) *held = 1;  // by whichever thread: they all write the same
}

// Adds a thread's elements of at least `from` to the block's histogram of upper 11 bits.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void count_elements(DgcShared& shared, const DgcRow& row,
                                             std::uint32_t tile, int thread, std::uint32_t from,
                                             const DgcThreadTile& tile_values) {
  for (int group = 0; group < kDgcGroups; ++group) {
    const std::int64_t first = group_first(row, tile, group, thread);
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t key = key_of(tile_values.residual[group][i]);
      if (reaches(key, from) && inside(row, first + i)) {
        Block::fetch_add(&shared.histogram[key >> 20], 1);
      }
    }
  }
}

// Appends a tile's elements of at least `from` to the tensor's list, in index order, at a place
// that one fetch_add gives: tiles stand in the list in any order, and their records say where. A
// tile that has no room is left out; `listed` then says that the list is not whole.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void list_tile(Block& block, DgcShared& shared, const DgcTables& tables,
                                        const DgcRow& row, DgcTensorState* state,
                                        std::uint32_t tile, std::uint32_t from,
                                        typename Block::template Each<DgcThreadTile>& values) {
  // Two counts in one number, each at most 1024: lower half, elements of the threads' first groups.
  static_assert(kDgcGroups == 2);
  typename Block::template Each<std::uint32_t> places;
  block.each([&](int thread) {
    std::uint32_t count = 0;
    for (int group = 0; group < kDgcGroups; ++group) {
      const std::int64_t first = group_first(row, tile, group, thread);
      for (int i = 0; i < 4; ++i) {
        const bool listed =
            reaches(key_of(values[thread].residual[group][i]), from) && inside(row, first + i);
        count += listed ? 1u << (16 * group) : 0u;
      }
    }
    places[thread] = count;
  });
  const std::uint32_t both = block.exclusive_sum(places);
  const std::uint32_t in_first_groups = both & 0xffffu;
  const std::uint32_t count = in_first_groups + (both >> 16);
  block.each([&](int thread) {
    if (thread != 0) return;
    shared.start = count == 0 ? 0 : Block::fetch_add(&state->listed, count);
    tables.tiles[row.first_tile + tile] = {shared.start, count};
  });
  if (count == 0) return;
  block.each([&](int thread) {
    const std::uint32_t start = shared.start;
    if (start > row.capacity || count > row.capacity - start) return;
    for (int group = 0; group < kDgcGroups; ++group) {
      const std::int64_t first = group_first(row, tile, group, thread);
      std::uint32_t place =
          group == 0 ? places[thread] & 0xffffu : in_first_groups + (places[thread] >> 16);
      for (int i = 0; i < 4; ++i) {
        const float value = values[thread].residual[group][i];
        if (!reaches(key_of(value), from) || !inside(row, first + i)) continue;
        const std::int64_t at = row.list_at + start + place++;
        tables.list_indices[at] = static_cast<std::uint32_t>(first + i);
        tables.list_values[at] = value;
      }
    }
  });
}

}  // namespace syncline::kernels
