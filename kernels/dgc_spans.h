// The seven launches of a step: what one block does in each of them with one span. They follow each
// other in this order; each finds in the tensor's state what the ones before found out.
#pragma once

#include "kernels/block.h"
#include "kernels/dgc_step.h"

namespace syncline::kernels {

//   update   u, v; histogram; speculative list     R g u v, W u v
//   recount  histogram, where the guess hid some   R v
//   collect  list, from the histogram's edge       R v
//   refine   two more histograms, of the list      (two launches)
//   count    how many each span sends              and where its part of the message begins
//   write    message, masking, report

// ---- One tile: update, count, list --------------------------------------------------------------

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

// What a thread reads of a tile before it writes any of it, beside the residuals.
struct DgcThreadInput {
  float gradient[kDgcGroups][4];
  float velocity[kDgcGroups][4];
};

// The usual case has no branch between its loads: all of them are in flight together.
SYNCLINE_HOST_DEVICE inline void load_input(const DgcRow& row, std::uint32_t tile, int thread,
                                            bool whole, DgcThreadInput& to,
                                            DgcThreadTile& residuals) {
  if (whole) {
    const std::int64_t first_of_all = group_first(row, tile, 0, thread);
    for (int group = 0; group < kDgcGroups; ++group) {
      const std::int64_t first = first_of_all + group * (4 * kBlockThreads);
      load_vector<Reuse::kStream>(row.gradient + first, to.gradient[group]);
      load_vector<Reuse::kStream>(row.velocity + first, to.velocity[group]);
      load_vector<Reuse::kStream>(row.residual + first, residuals.residual[group]);
    }
    return;
  }
  for (int group = 0; group < kDgcGroups; ++group) {
    const std::int64_t first = group_first(row, tile, group, thread);
    load_group<Reuse::kStream>(row.gradient, first, row.elements, row.gradient_aligned,
                               to.gradient[group]);
    load_group<Reuse::kStream>(row.velocity, first, row.elements, row.velocity_aligned,
                               to.velocity[group]);
    load_group<Reuse::kStream>(row.residual, first, row.elements, row.residual_aligned,
                               residuals.residual[group]);
  }
}

// u and v of a thread's elements, in place.
SYNCLINE_HOST_DEVICE inline void update_elements(const DgcRow& row, float momentum,
                                                 std::uint32_t tile, int thread,
                                                 std::uint32_t* held, DgcThreadTile& to) {
  const bool whole = whole_groups(row, tile, thread);
  DgcThreadInput input;
  load_input(row, tile, thread, whole, input, to);
  bool any_held = false;
  for (int group = 0; group < kDgcGroups; ++group) {
    for (int i = 0; i < 4; ++i) {
      float& velocity = input.velocity[group][i];
      float& residual = to.residual[group][i];
      const float next = momentum * velocity + input.gradient[group][i];
      // Where u' is not finite, v' is not either.
      const bool good = is_finite(residual + next);
      any_held = any_held || !good;
      residual = good ? residual + next : residual;
      velocity = good ? next : velocity;
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

// ---- The threshold ------------------------------------------------------------------------------
//
// How a block finds the threshold from histograms: the k-th largest key lies in the bin where the
// count from the top first reaches k; its further bits are found the same way among the elements
// of that bin. Three rounds of 11, 10 and 10 bits settle it. The last block of a tensor to finish a
// round reads the tensor's histogram, clears it for the next round and leaves what it found in the
// tensor's state.

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

// ---- One span -----------------------------------------------------------------------------------

struct DgcSpan {
  std::uint32_t tensor;
  std::uint32_t in_tensor;   // from 0
  std::uint32_t first_tile;  // of the tensor's
  std::uint32_t tiles;
};

SYNCLINE_HOST_DEVICE inline DgcSpan dgc_span(const DgcTables& tables, std::uint32_t span) {
  const std::uint32_t tensor = tables.span_tensor[span];
  const DgcRow& row = tables.rows[tensor];
  const std::uint32_t in_tensor = span - row.first_span;
  const std::uint32_t first = in_tensor * tables.span_tiles;
  const std::uint32_t left = row.tiles - first;  // an empty tensor's only span starts at 0 too
  return {tensor, in_tensor, first, left < tables.span_tiles ? left : tables.span_tiles};
}

// The magnitude from which on the update lists candidates; 0: it lists none.
SYNCLINE_HOST_DEVICE inline std::uint32_t dgc_guess(const DgcTensorState& state,
                                                    const DgcStep& step) {
  const std::uint32_t guess = key_of(float_of(state.last) * step.candidate_scale);
  return guess < kKeyEnd ? guess : 0;
}

// Before the first step: the row of a tensor in its place, its state and histogram cleared, and the
// map from spans to tensors.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void dgc_prepare_row(Block& block, const DgcTables& tables,
                                              const DgcRow& row, std::uint32_t tensor) {
  block.each([&](int thread) {
    std::uint32_t* histogram = tables.histograms + static_cast<std::int64_t>(tensor) * kDgcBins;
    for (int bin = thread; bin < kDgcBins; bin += kBlockThreads) histogram[bin] = 0;
    for (std::uint32_t span = static_cast<std::uint32_t>(thread); span < row.spans;
         span += kBlockThreads) {
      tables.span_tensor[row.first_span + span] = tensor;
    }
    if (thread != 0) return;
    tables.rows[tensor] = row;
    tables.states[tensor] = DgcTensorState{};
  });
}

// Ends a round of counting: the tensor's last block decides what comes next.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void end_first_round(Block& block, DgcShared& shared,
                                              const DgcTables& tables, const DgcRow& row,
                                              std::uint32_t tensor, std::uint32_t from,
                                              bool speculative, bool recounted) {
  DgcTensorState* state = &tables.states[tensor];
  std::uint32_t* histogram = tables.histograms + static_cast<std::int64_t>(tensor) * kDgcBins;
  flush_histogram(block, shared, histogram);
  if (!block.last_of(&state->done, row.spans)) return;
  const std::uint32_t total = find_bin(block, shared, histogram, row.kept);
  block.each([&](int thread) {
    if (thread == 0) {
      decide_source(row, shared, total, from, speculative, recounted, state);
    }
  });
}

template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void dgc_update_span(Block& block, DgcShared& shared,
                                              const DgcTables& tables, const DgcStep& step,
                                              std::uint32_t number) {
  const DgcSpan span = dgc_span(tables, number);
  const DgcRow& row = tables.rows[span.tensor];
  DgcTensorState* state = &tables.states[span.tensor];
  const std::uint32_t guess = dgc_guess(*state, step);
  const std::uint32_t from = counted_from(guess);
  clear_histogram(block, shared);
  for (std::uint32_t i = 0; i < span.tiles; ++i) {
    const std::uint32_t tile = span.first_tile + i;
    typename Block::template Each<DgcThreadTile> values;
    block.each([&](int thread) {
      update_elements(row, step.momentum, tile, thread, &state->held, values[thread]);
      count_elements<Block>(shared, row, tile, thread, from, values[thread]);
    });
    if (guess != 0) list_tile(block, shared, tables, row, state, tile, guess, values);
  }
  end_first_round(block, shared, tables, row, span.tensor, from, guess != 0, false);
}

template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void dgc_recount_span(Block& block, DgcShared& shared,
                                               const DgcTables& tables, std::uint32_t number) {
  const DgcSpan span = dgc_span(tables, number);
  if (tables.states[span.tensor].source != DgcSource::kRecount) return;
  const DgcRow& row = tables.rows[span.tensor];
  clear_histogram(block, shared);
  for (std::uint32_t i = 0; i < span.tiles; ++i) {
    const std::uint32_t tile = span.first_tile + i;
    block.each([&](int thread) {
      DgcThreadTile values;
      load_residuals(row, tile, thread, values);
      count_elements<Block>(shared, row, tile, thread, 0, values);
    });
  }
  end_first_round(block, shared, tables, row, span.tensor, 0, false, true);
}

template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void dgc_collect_span(Block& block, DgcShared& shared,
                                               const DgcTables& tables, std::uint32_t number) {
  const DgcSpan span = dgc_span(tables, number);
  DgcTensorState* state = &tables.states[span.tensor];
  if (state->source != DgcSource::kCollect) return;
  const DgcRow& row = tables.rows[span.tensor];
  const std::uint32_t edge = state->prefix << 20;
  for (std::uint32_t i = 0; i < span.tiles; ++i) {
    const std::uint32_t tile = span.first_tile + i;
    typename Block::template Each<DgcThreadTile> values;
    block.each([&](int thread) { load_residuals(row, tile, thread, values[thread]); });
    list_tile(block, shared, tables, row, state, tile, edge, values);
  }
}

// The next ten bits of the threshold: `shift` is 10, then 0.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void dgc_refine_span(Block& block, DgcShared& shared,
                                              const DgcTables& tables, int shift,
                                              std::uint32_t number) {
  const DgcSpan span = dgc_span(tables, number);
  DgcTensorState* state = &tables.states[span.tensor];
  if (state->settled != 0) return;
  const DgcRow& row = tables.rows[span.tensor];
  const DgcSource source = state->source;
  const std::uint32_t prefix = state->prefix;
  clear_histogram(block, shared);
  const std::uint32_t items =
      span_items(block, shared, tables, row, source, span.first_tile, span.tiles);
  for (std::uint32_t round = 0; round < items; round += 4 * kBlockThreads) {
    block.each([&](int thread) {
      DgcItems got;
      load_items(shared, tables, row, source, span.first_tile, span.tiles, items,
                 round + 4 * static_cast<std::uint32_t>(thread), got);
      for (const std::uint32_t key : got.key) {
        if (key == kNoKey || (key >> (shift + 10)) != prefix) continue;
        Block::fetch_add(&shared.histogram[(key >> shift) & 1023u], 1);
      }
    });
  }
  std::uint32_t* histogram = tables.histograms + static_cast<std::int64_t>(span.tensor) * kDgcBins;
  flush_histogram(block, shared, histogram);
  if (!block.last_of(&state->done, row.spans)) return;
  find_bin(block, shared, histogram, state->rank);
  block.each([&](int thread) {
    if (thread != 0) return;
    state->prefix = (prefix << 10) | shared.bin;
    state->rank -= shared.above;
    if (shift != 0) return;
    state->settled = 1;
    state->threshold = state->prefix;
    state->ties = state->rank;
  });
}

// Turns the counts of a tensor's spans into the counts of the spans before each, and ends the
// step's bookkeeping: what is sent, and the guess for the next step.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void sum_up_spans(Block& block, const DgcTables& tables, const DgcRow& row,
                                           DgcTensorState* state) {
  DgcSpanCount* counts = tables.span_counts + row.first_span;
  DgcSpanCount before{0, 0};
  for (std::uint32_t round = 0; round < row.spans; round += kBlockThreads) {
    typename Block::template Each<std::uint32_t> greater;
    typename Block::template Each<std::uint32_t> ties;
    block.each([&](int thread) {
      const std::uint32_t at = round + static_cast<std::uint32_t>(thread);
      greater[thread] = at < row.spans ? counts[at].greater : 0;
      ties[thread] = at < row.spans ? counts[at].ties : 0;
    });
    const std::uint32_t all_greater = block.exclusive_sum(greater);
    const std::uint32_t all_ties = block.exclusive_sum(ties);
    block.each([&](int thread) {
      const std::uint32_t at = round + static_cast<std::uint32_t>(thread);
      if (at >= row.spans) return;
      counts[at] = {before.greater + greater[thread], before.ties + ties[thread]};
    });
    before = {before.greater + all_greater, before.ties + all_ties};
  }
  block.each([&](int thread) {
    if (thread != 0) return;
    const std::uint32_t ties = before.ties < state->ties ? before.ties : state->ties;
    state->selected = before.greater + ties;
    state->listed = 0;
    state->last = row.capacity == 0 ? 0 : state->threshold;
  });
}

template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void dgc_count_span(Block& block, DgcShared& shared,
                                             const DgcTables& tables, std::uint32_t number) {
  const DgcSpan span = dgc_span(tables, number);
  const DgcRow& row = tables.rows[span.tensor];
  DgcTensorState* state = &tables.states[span.tensor];
  const DgcSource source = state->source;
  const std::uint32_t threshold = state->threshold;
  const std::uint32_t items =
      span_items(block, shared, tables, row, source, span.first_tile, span.tiles);
  typename Block::template Each<DgcSpanCount> counts;
  block.each([&](int thread) { counts[thread] = {0, 0}; });
  for (std::uint32_t round = 0; round < items; round += 4 * kBlockThreads) {
    block.each([&](int thread) {
      DgcItems got;
      load_items(shared, tables, row, source, span.first_tile, span.tiles, items,
                 round + 4 * static_cast<std::uint32_t>(thread), got);
      for (const std::uint32_t key : got.key) {
        if (key == kNoKey) continue;
        counts[thread].greater += key > threshold ? 1 : 0;
        counts[thread].ties += key == threshold ? 1 : 0;
      }
    });
  }
  typename Block::template Each<std::uint32_t> greater;
  typename Block::template Each<std::uint32_t> ties;
  block.each([&](int thread) {
    greater[thread] = counts[thread].greater;
    ties[thread] = counts[thread].ties;
  });
  const std::uint32_t all_greater = block.exclusive_sum(greater);
  const std::uint32_t all_ties = block.exclusive_sum(ties);
  block.each([&](int thread) {
    if (thread == 0) tables.span_counts[number] = {all_greater, all_ties};
  });
  if (block.last_of(&state->done, row.spans)) sum_up_spans(block, tables, row, state);
}

// Fills the places of a tensor's part of the message from `from` on, and writes its report.
template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void end_message(Block& block, const DgcRow& row, const DgcStep& step,
                                          std::uint32_t from, DgcReport* report,
                                          const DgcReport& written) {
  block.each([&](int thread) {
    for (std::int64_t at = static_cast<std::int64_t>(from) + thread;
         at < static_cast<std::int64_t>(row.kept); at += kBlockThreads) {
      step.indices[row.packed_at + at] = kPadIndex;
      step.values[row.packed_at + at] = 0.0f;
    }
    if (thread == 0) *report = written;
  });
}

template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void dgc_write_span(Block& block, DgcShared& shared,
                                             const DgcTables& tables, const DgcStep& step,
                                             std::uint32_t number) {
  const DgcSpan span = dgc_span(tables, number);
  const DgcRow& row = tables.rows[span.tensor];
  DgcTensorState* state = &tables.states[span.tensor];
  DgcReport* report = &step.reports[span.tensor];
  const DgcSource source = state->source;
  const std::uint32_t threshold = state->threshold;
  const std::uint32_t ties_sent = state->ties;
  const std::uint32_t items =
      span_items(block, shared, tables, row, source, span.first_tile, span.tiles);
  DgcSpanCount before = tables.span_counts[number];
  for (std::uint32_t round = 0; round < items; round += 4 * kBlockThreads) {
    typename Block::template Each<DgcItems> got;
    // Two counts in one number, each at most 1024: lower half, those greater than the threshold.
    typename Block::template Each<std::uint32_t> places;
    block.each([&](int thread) {
      load_items(shared, tables, row, source, span.first_tile, span.tiles, items,
                 round + 4 * static_cast<std::uint32_t>(thread), got[thread]);
      std::uint32_t count = 0;
      for (const std::uint32_t key : got[thread].key) {
        if (key == kNoKey) continue;
        count += key > threshold ? 1u : 0u;
        count += key == threshold ? 1u << 16 : 0u;
      }
      places[thread] = count;
    });
    const std::uint32_t both = block.exclusive_sum(places);
    block.each([&](int thread) {
      std::uint32_t greater = before.greater + (places[thread] & 0xffffu);
      std::uint32_t ties = before.ties + (places[thread] >> 16);
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t key = got[thread].key[i];
        if (key == kNoKey || key < threshold) continue;
        const bool tie = key == threshold;
        const std::uint32_t ties_before = ties < ties_sent ? ties : ties_sent;
        const std::int64_t at = row.packed_at + greater + ties_before;
        const bool sent = !tie || ties < ties_sent;
        greater += tie ? 0 : 1;
        ties += tie ? 1 : 0;
        if (!sent) continue;
        const std::uint32_t index = got[thread].index[i];
        step.indices[at] = index;
        step.values[at] = got[thread].value[i];
        row.velocity[index] = 0.0f;
        row.residual[index] = 0.0f;
      }
    });
    before = {before.greater + (both & 0xffffu), before.ties + (both >> 16)};
  }
  if (span.in_tensor != 0) return;
  end_message(block, row, step, state->selected, report,
              {state->selected, state->held, threshold, state->path});
  block.each([&](int thread) {
    if (thread == 0) state->held = 0;
  });
}

}  // namespace syncline::kernels
