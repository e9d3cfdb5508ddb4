// How a block finds the threshold from histograms: the k-th largest key lies in the bin where the
// count from the top first reaches k; its further bits are found the same way among the elements
// of that bin. Three rounds of 11, 10 and 10 bits settle it. The last block of a tensor to finish a
// round reads the tensor's histogram, clears it for the next round and leaves what it found in the
// tensor's state.
#pragma once

#include "kernels/dgc_tile.h"

namespace syncline::kernels {

template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void clear_histogram(Block& block, DgcShared& shared) {
  block.each([&](int thread) {
    for (int bin = thread; bin < kDgcBins; bin += kBlockThreads) shared.histogram[bin] = 0;
  });
}

// Adds the block's histogram to the tensor's.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void flush_histogram(Block& block, const DgcShared& shared,
                                              std::uint32_t* histogram) {
  block.each([&](int thread) {
    for (int bin = thread; bin < kDgcBins; bin += kBlockThreads) {
      const std::uint32_t count = shared.histogram[bin];
      if (count != 0) Block::fetch_add(&histogram[bin], count);
    }
  });
}

// Finds the bin of the element of that rank (from 1, from the top) and clears the histogram.
// Returns the sum of all bins; where it is at least `rank`, shared has the bin, what lies above it
// and what lies in it.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM std::uint32_t find_bin(Block& block, DgcShared& shared,
                                                std::uint32_t* histogram, std::uint32_t rank) {
  constexpr int kOwn = kDgcBins / kBlockThreads;
  struct Bins {
    std::uint32_t counts[kOwn];  // from the top down
  };
  typename Block::template Each<Bins> own;
  typename Block::template Each<std::uint32_t> above;
  block.each([&](int thread) {
    const int top = kDgcBins - 1 - thread * kOwn;
    std::uint32_t sum = 0;
    for (int i = 0; i < kOwn; ++i) {
      own[thread].counts[i] = histogram[top - i];
      histogram[top - i] = 0;
      sum += own[thread].counts[i];
    }
    above[thread] = sum;
  });
  const std::uint32_t total = block.exclusive_sum(above);
  block.each([&](int thread) {
    std::uint32_t seen = above[thread];
    for (int i = 0; i < kOwn; ++i) {
      const std::uint32_t count = own[thread].counts[i];
      if (seen < rank && rank - seen <= count) {
        shared.bin = static_cast<std::uint32_t>(kDgcBins - 1 - thread * kOwn - i);
        shared.above = seen;
        shared.in_bin = count;
      }
      seen += count;
    }
  });
  return total;
}

// Where counting starts that goes with a guess: at a bin's lower edge, one octave below. 0 counts
// everything.
SYNCLINE_HOST_DEVICE inline std::uint32_t counted_from(std::uint32_t guess) {
  const std::uint32_t bin = guess >> 20;
  return bin > 8 ? (bin - 8) << 20 : 0;
}

// After the first round: how the selection goes on. `total` keys of at least `from` were counted.
// Runs in one thread.
SYNCLINE_HOST_DEVICE inline void decide_source(const DgcRow& row, const DgcShared& shared,
                                               std::uint32_t total, std::uint32_t from,
                                               bool speculative, bool recounted,
                                               DgcTensorState* state) {
  const std::uint32_t wanted = row.kept;
  const std::uint32_t listed = state->listed;
  state->settled = 0;
  state->listed = 0;
  if (wanted == 0) {
    state->source = DgcSource::kNothing;
    state->path = DgcPath::kNothing;
    state->settled = 1;
    state->threshold = kNoKey;
    state->ties = 0;
    return;
  }
  if (total < wanted) {
    // Either the guess hides some, or there are no more to be had and all of them are sent.
    state->source = from > 0 ? DgcSource::kRecount : DgcSource::kWhole;
    if (from > 0) return;
    state->path = DgcPath::kWhole;
    state->settled = 1;
    state->threshold = 0;
    state->ties = 0xffffffffu;
    return;
  }
  state->prefix = shared.bin;
  state->rank = wanted - shared.above;
  const bool fits = shared.above + shared.in_bin <= row.capacity;
  if (speculative && wanted <= listed && listed <= row.capacity) {
    state->source = DgcSource::kList;
    state->path = DgcPath::kSpeculative;
  } else if (fits) {
    state->source = DgcSource::kCollect;
    state->path = recounted ? DgcPath::kRecount : DgcPath::kExact;
  } else {
    state->source = DgcSource::kWhole;
    state->path = DgcPath::kWhole;
  }
}

// What a block has of a tensor whose list (or residual) it walks: its items, in index order.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM std::uint32_t span_items(Block& block, DgcShared& shared,
                                                  const DgcTables& tables, const DgcRow& row,
                                                  DgcSource source, std::uint32_t first_tile,
                                                  std::uint32_t tiles) {
  if (source == DgcSource::kNothing) return 0;
  if (source == DgcSource::kWhole) return tiles * kDgcTile;
  typename Block::template Each<std::uint32_t> first;
  block.each([&](int thread) {
    const bool one = static_cast<std::uint32_t>(thread) < tiles;
    const std::int64_t at = row.first_tile + first_tile + thread;
    first[thread] = one ? tables.tiles[at].count : 0;
    if (one) shared.tile_start[thread] = tables.tiles[at].start;
  });
  const std::uint32_t items = block.exclusive_sum(first);
  block.each([&](int thread) {
    if (static_cast<std::uint32_t>(thread) < tiles) shared.tile_first[thread] = first[thread];
  });
  return items;
}

struct DgcItems {
  std::uint32_t key[4];  // kNoKey where there is no item
  std::uint32_t index[4];
  float value[4];
};

// Items at .. at + 3 of a span.
SYNCLINE_HOST_DEVICE inline void load_items(const DgcShared& shared, const DgcTables& tables,
                                            const DgcRow& row, DgcSource source,
                                            std::uint32_t first_tile, std::uint32_t tiles,
                                            std::uint32_t items, std::uint32_t at, DgcItems& to) {
  for (int i = 0; i < 4; ++i) to.key[i] = kNoKey;
  if (at >= items) return;
  if (source == DgcSource::kWhole) {
    const std::int64_t first = static_cast<std::int64_t>(first_tile) * kDgcTile + at - row.shift;
    load_group<Reuse::kKeep>(row.residual, first, row.elements, row.residual_aligned, to.value);
    for (int i = 0; i < 4; ++i) {
      if (!inside(row, first + i)) continue;
      to.key[i] = key_of(to.value[i]);
      to.index[i] = static_cast<std::uint32_t>(first + i);
    }
    return;
  }
  // The last tile whose first item is not behind this one has it: tiles without items share their
  // first item with the next one.
  std::uint32_t tile = 0;
  for (std::uint32_t step = kDgcMaxSpanTiles / 2; step > 0; step /= 2) {
    if (tile + step < tiles && shared.tile_first[tile + step] <= at) tile += step;
  }
  for (std::uint32_t i = 0; i < 4 && at + i < items; ++i) {
    while (tile + 1 < tiles && shared.tile_first[tile + 1] <= at + i) ++tile;
    const std::int64_t place =
        row.list_at + shared.tile_start[tile] + (at + i - shared.tile_first[tile]);
    to.index[i] = tables.list_indices[place];
    to.value[i] = tables.list_values[place];
    to.key[i] = key_of(to.value[i]);
  }
}

}  // namespace syncline::kernels
