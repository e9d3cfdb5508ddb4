// One step of Deep Gradient Compression (Lin et al., ICLR 2018) for all tensors of a plan:
//
//   u' = m u + g          v' = v + u'             (momentum correction and accumulation)
//   S  = the min(kept, n) largest |v'|, ties to the lower index
//   sent: (i, v'_i) for i in S, in index order;   u' and v' become 0 there (momentum factor
//   masking)
//
// in fp32, every operation rounded by itself in the order written; bits equal
// kernels/reference/optimizers.h on the host. Equal inputs give equal bits, in every run, on every
// path of the selection.
//
// The selection, in bytes per element:
//   speculative  20   R g u v, W u v. Elements of at least 0.95 x the last step's threshold are
//                     listed on the way; holds if kept <= listed <= room in the list
//   exact        24   the update counts a histogram of magnitudes, then v is read again to list
//   recount      28   the guess was too high: v is read once more to count
//   whole        36   too many candidates (ties; more than one in 32 kept): v is its own list,
//                     read four times
// plus about 0.04 for the lists and 0.07 for the message at kept = n / 1000. The device chooses for
// each tensor separately; no host waits. A launch without work ends at once.
//
// Floors on an H200 at 4.8 TB/s, microseconds for 25.5 M, 110 M and 340 M elements: speculative
// 106, 458, 1417; exact 128, 550, 1700. Seven launches for any number of tensors.
//
// An element with a v' that would not be finite keeps its old u and v, and the report's `held` is
// set. A v that is NaN or infinite is never sent. So the state and messages stay finite.
#include "kernels/dgc_step.h"

#include <string>
#include <utility>

#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

// A tile is 2048 elements, one block's work at a time; it never straddles tensors. A span is up to
// 32 adjacent tiles of one tensor, one block's work in one launch. Every tensor has at least one
// span, even if empty, so that its report is written.
//
// A tensor's list holds its candidates, elements that may be among the largest, as index and value:
// at most 16 kept + 1024. If more than one element in 32 is kept, it has no list, and the whole
// residual is used instead.
constexpr int kDgcTile = 2048;
constexpr int kDgcGroups = 2;         // groups of 4 elements per thread and tile
constexpr int kDgcMaxSpanTiles = 32;  // per span
constexpr int kDgcBins = 2048;        // 11 bits: exponent and 3 bits of mantissa

// A tensor as the kernels see it.
struct DgcRow {
  const float* gradient;
  float* velocity;
  float* residual;
  std::uint32_t elements;
  std::uint32_t kept;  // number to send, at most `elements`
  std::uint32_t tiles;
  std::uint32_t spans;
  std::int64_t first_tile;
  std::uint32_t first_span;
  std::uint32_t capacity;  // room in its list
  std::int64_t list_at;
  std::int64_t packed_at;
  std::uint8_t shift;     // groups of 4 are counted from element -shift on
  bool gradient_aligned;  // its groups are at multiples of their bytes,
  bool velocity_aligned;  // so that one access takes a group
  bool residual_aligned;
  bool all_aligned;
};

enum class DgcSource : std::uint32_t {
  kRecount,  // no list, and the histogram omits elements that are needed
  kCollect,  // the histogram gave a lower edge: a pass over the residual makes the list
  kList,     // the list has all that can be selected
  kWhole,    // the residual itself is the list
  kNothing,  // no elements to select
};

// A tensor's state, which the kernels of a step pass on.
struct DgcTensorState {
  std::uint32_t last;    // the last step's threshold; 0: none
  std::uint32_t listed;  // elements added to the list
  std::uint32_t done;    // spans that have finished the current kernel
  std::uint32_t held;
  DgcSource source;
  std::uint32_t settled;  // 1: threshold and ties are known
  std::uint32_t prefix;   // upper bits of the threshold found so far
  std::uint32_t rank;  // from 1: rank of the threshold among keys with this prefix, largest first
  std::uint32_t threshold;  // sent: every key above it, and
  std::uint32_t ties;       // this number of the first ones equal to it
  std::uint32_t selected;
  DgcPath path;
};

struct DgcTileRecord {
  std::uint32_t start;  // index in the tensor's list
  std::uint32_t count;
};

struct DgcSpanCount {
  std::uint32_t greater;  // keys above the threshold in this span; later: in the spans before it
  std::uint32_t ties;
};

// Addresses in a workspace.
struct DgcTables {
  DgcRow* rows;
  DgcTensorState* states;
  std::uint32_t* histograms;   // kDgcBins per tensor, all 0 between kernels
  std::uint32_t* span_tensor;  // each span's tensor
  DgcSpanCount* span_counts;
  DgcTileRecord* tiles;
  std::uint32_t* list_indices;
  float* list_values;
  std::uint32_t span_tiles;
};

// ---- The launches -------------------------------------------------------------------------------
//
// One block's work on one span, launch after launch. Each finds the results of those before in the
// tensor's state.
//
//   update   u, v; histogram; speculative list     R g u v, W u v
//   recount  histogram, if the guess omitted some  R v
//   collect  list, from the histogram's edge       R v
//   refine   two more histograms, of the list      (two launches)
//   count    elements that each span sends         and the place of its part in the message
//   write    message, masking, report

// ---- One tile: update, count, list --------------------------------------------------------------

// A magnitude as an unsigned number: the bits without the sign have the magnitudes' order. Numbers
// that are not finite have no key.
constexpr std::uint32_t kKeyEnd = 0x7f800000u;  // one past the key of the largest float
constexpr std::uint32_t kNoKey = 0xffffffffu;

SYNCLINE_BLOCK_ALGORITHM std::uint32_t key_of(float value) {
  const std::uint32_t magnitude = bits_of(value) & 0x7fffffffu;
  return magnitude < kKeyEnd ? magnitude : kNoKey;
}

// Returns true if the key is in [from, kKeyEnd).
SYNCLINE_BLOCK_ALGORITHM bool reaches(std::uint32_t key, std::uint32_t from) {
  return key >= from && key < kKeyEnd;
}

struct DgcShared {
  std::uint32_t histogram[kDgcBins];
  std::uint32_t tile_first[kDgcMaxSpanTiles];  // a span's first item in each tile
  std::uint32_t tile_start[kDgcMaxSpanTiles];  // the place of that item in the list
  std::uint32_t start;
  std::uint32_t bin;
  std::uint32_t above;
  std::uint32_t in_bin;
};

// Residuals of one thread in one tile: groups of 4, 4 * kBlockThreads elements apart.
struct DgcThreadTile {
  float residual[kDgcGroups][4];
};

// Returns the first element of a thread's group; it may be before the tensor's first.
SYNCLINE_BLOCK_ALGORITHM std::int64_t group_first(const DgcRow& row, std::uint32_t tile, int group,
                                                  int thread) {
  return static_cast<std::int64_t>(tile) * kDgcTile + (group * kBlockThreads + thread) * 4 -
         row.shift;
}

SYNCLINE_BLOCK_ALGORITHM bool inside(const DgcRow& row, std::int64_t index) {
  return index >= 0 && index < static_cast<std::int64_t>(row.elements);
}

// Returns true if all groups of a thread in a tile are whole and can be accessed at once.
SYNCLINE_BLOCK_ALGORITHM bool whole_groups(const DgcRow& row, std::uint32_t tile, int thread) {
  return row.all_aligned && group_first(row, tile, 0, thread) >= 0 &&
         group_first(row, tile, kDgcGroups - 1, thread) + 4 <=
             static_cast<std::int64_t>(row.elements);
}

SYNCLINE_BLOCK_ALGORITHM void load_residuals(const DgcRow& row, std::uint32_t tile, int thread,
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

// The thread's other reads of a tile, all before its first write.
struct DgcThreadInput {
  float gradient[kDgcGroups][4];
  float velocity[kDgcGroups][4];
};

// Loads a thread's elements. The usual case has no branch between loads: all are in flight at once.
SYNCLINE_BLOCK_ALGORITHM void load_input(const DgcRow& row, std::uint32_t tile, int thread,
                                         bool whole, DgcThreadInput& to, DgcThreadTile& residuals) {
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

// Updates u and v of a thread's elements, in place.
SYNCLINE_BLOCK_ALGORITHM void update_elements(const DgcRow& row, float momentum, std::uint32_t tile,
                                              int thread, std::uint32_t* held, DgcThreadTile& to) {
  const bool whole = whole_groups(row, tile, thread);
  DgcThreadInput input;
  load_input(row, tile, thread, whole, input, to);
  bool any_held = false;
  for (int group = 0; group < kDgcGroups; ++group) {
    for (int i = 0; i < 4; ++i) {
      float& velocity = input.velocity[group][i];
      float& residual = to.residual[group][i];
      const float next = momentum * velocity + input.gradient[group][i];
      // If u' is not finite, neither is v'.
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
  if (any_held) *held = 1;  // several threads may write it, all the same
}

// Adds a thread's elements of at least `from` to the block's histogram of upper 11 bits.
SYNCLINE_BLOCK_ALGORITHM void count_elements(DgcShared& shared, const DgcRow& row,
                                             std::uint32_t tile, int thread, std::uint32_t from,
                                             const DgcThreadTile& tile_values) {
  for (int group = 0; group < kDgcGroups; ++group) {
    const std::int64_t first = group_first(row, tile, group, thread);
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t key = key_of(tile_values.residual[group][i]);
      if (reaches(key, from) && inside(row, first + i)) {
        KernelBlock::fetch_add(&shared.histogram[key >> 20], 1);
      }
    }
  }
}

// Appends a tile's elements of at least `from` to the tensor's list, in index order. One fetch_add
// gives the place, so tiles are listed in any order, recorded by tile. A tile without room is left
// out; `listed` then shows that the list is incomplete.
SYNCLINE_BLOCK_ALGORITHM void list_tile(KernelBlock& block, DgcShared& shared,
                                        const DgcTables& tables, const DgcRow& row,
                                        DgcTensorState* state, std::uint32_t tile,
                                        std::uint32_t from,
                                        KernelBlock::Each<DgcThreadTile>& values) {
  // Two counts in one number, each at most 1024: lower half, elements of the threads' first groups.
  static_assert(kDgcGroups == 2);
  KernelBlock::Each<std::uint32_t> places;
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
    shared.start = count == 0 ? 0 : KernelBlock::fetch_add(&state->listed, count);
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
// A block finds the threshold from histograms: the k-th largest key is in the bin that makes the
// count from the top reach k. The elements of that bin give its further bits in the same
// way. Three rounds of 11, 10 and 10 bits are enough. The last block of a tensor in a round reads
// the tensor's histogram, clears it for the next round and stores the result in the tensor's state.

SYNCLINE_BLOCK_ALGORITHM void clear_histogram(KernelBlock& block, DgcShared& shared) {
  block.each([&](int thread) {
    for (int bin = thread; bin < kDgcBins; bin += kBlockThreads) shared.histogram[bin] = 0;
  });
}

// Adds the block's histogram to the tensor's.
SYNCLINE_BLOCK_ALGORITHM void flush_histogram(KernelBlock& block, const DgcShared& shared,
                                              std::uint32_t* histogram) {
  block.each([&](int thread) {
    for (int bin = thread; bin < kDgcBins; bin += kBlockThreads) {
      const std::uint32_t count = shared.histogram[bin];
      if (count != 0) KernelBlock::fetch_add(&histogram[bin], count);
    }
  });
}

// Finds the bin of the element of that rank (from 1, from the top) and clears the histogram.
// Returns the sum of all bins. If that is at least `rank`, `shared` has the bin, the count above it
// and the count in it.
SYNCLINE_BLOCK_ALGORITHM std::uint32_t find_bin(KernelBlock& block, DgcShared& shared,
                                                std::uint32_t* histogram, std::uint32_t rank) {
  constexpr int kOwn = kDgcBins / kBlockThreads;
  struct Bins {
    std::uint32_t counts[kOwn];  // counts from the top down
  };
  KernelBlock::Each<Bins> own;
  KernelBlock::Each<std::uint32_t> above;
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

// Returns the lowest key to count for a guess: a bin's lower edge, one octave below. 0: all keys.
SYNCLINE_BLOCK_ALGORITHM std::uint32_t counted_from(std::uint32_t guess) {
  const std::uint32_t bin = guess >> 20;
  return bin > 8 ? (bin - 8) << 20 : 0;
}

// Chooses the selection's path after the first round. `total` keys of at least `from` were counted.
// Runs in one thread.
SYNCLINE_BLOCK_ALGORITHM void decide_source(const DgcRow& row, const DgcShared& shared,
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
    // Either the guess omitted some, or there are no more and all are sent.
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

// ---- One span -----------------------------------------------------------------------------------

struct DgcSpan {
  std::uint32_t tensor;
  std::uint32_t in_tensor;   // index in the tensor, from 0
  std::uint32_t first_tile;  // index among the tensor's tiles
  std::uint32_t tiles;
  const DgcRow& row;
  DgcTensorState* state;
  std::uint32_t* histogram;
};

// Returns the span of this block.
SYNCLINE_BLOCK_ALGORITHM DgcSpan span_of_block(const DgcTables& tables) {
  const std::uint32_t tensor = tables.span_tensor[blockIdx.x];
  const DgcRow& row = tables.rows[tensor];
  const std::uint32_t in_tensor = blockIdx.x - row.first_span;
  const std::uint32_t first = in_tensor * tables.span_tiles;
  const std::uint32_t left = row.tiles - first;  // an empty tensor's only span starts at 0 too
  return {tensor,
          in_tensor,
          first,
          left < tables.span_tiles ? left : tables.span_tiles,
          row,
          &tables.states[tensor],
          tables.histograms + static_cast<std::int64_t>(tensor) * kDgcBins};
}

// Returns the number of items in the block's span of the list (or residual), in index order.
SYNCLINE_BLOCK_ALGORITHM std::uint32_t span_items(KernelBlock& block, DgcShared& shared,
                                                  const DgcTables& tables, const DgcSpan& span,
                                                  DgcSource source) {
  if (source == DgcSource::kNothing) return 0;
  if (source == DgcSource::kWhole) return span.tiles * kDgcTile;
  KernelBlock::Each<std::uint32_t> first;
  block.each([&](int thread) {
    const bool one = static_cast<std::uint32_t>(thread) < span.tiles;
    const std::int64_t at = span.row.first_tile + span.first_tile + thread;
    first[thread] = one ? tables.tiles[at].count : 0;
    if (one) shared.tile_start[thread] = tables.tiles[at].start;
  });
  const std::uint32_t items = block.exclusive_sum(first);
  block.each([&](int thread) {
    if (static_cast<std::uint32_t>(thread) < span.tiles) shared.tile_first[thread] = first[thread];
  });
  return items;
}

struct DgcItems {
  std::uint32_t key[4];  // kNoKey: no item
  std::uint32_t index[4];
  float value[4];
};

// Loads items at .. at + 3 of a span.
SYNCLINE_BLOCK_ALGORITHM void load_items(const DgcShared& shared, const DgcTables& tables,
                                         const DgcSpan& span, DgcSource source, std::uint32_t items,
                                         std::uint32_t at, DgcItems& to) {
  const DgcRow& row = span.row;
  for (int i = 0; i < 4; ++i) to.key[i] = kNoKey;
  if (at >= items) return;
  if (source == DgcSource::kWhole) {
    const std::int64_t first =
        static_cast<std::int64_t>(span.first_tile) * kDgcTile + at - row.shift;
    load_group<Reuse::kKeep>(row.residual, first, row.elements, row.residual_aligned, to.value);
    for (int i = 0; i < 4; ++i) {
      if (!inside(row, first + i)) continue;
      to.key[i] = key_of(to.value[i]);
      to.index[i] = static_cast<std::uint32_t>(first + i);
    }
    return;
  }
  // The item is in the last tile that begins at or before it: tiles without items share their first
  // item with the next one.
  std::uint32_t tile = 0;
  for (std::uint32_t step = kDgcMaxSpanTiles / 2; step > 0; step /= 2) {
    if (tile + step < span.tiles && shared.tile_first[tile + step] <= at) tile += step;
  }
  for (std::uint32_t i = 0; i < 4 && at + i < items; ++i) {
    while (tile + 1 < span.tiles && shared.tile_first[tile + 1] <= at + i) ++tile;
    const std::int64_t place =
        row.list_at + shared.tile_start[tile] + (at + i - shared.tile_first[tile]);
    to.index[i] = tables.list_indices[place];
    to.value[i] = tables.list_values[place];
    to.key[i] = key_of(to.value[i]);
  }
}

// Calls take(thread, key) for all items of a span.
template <typename F>
SYNCLINE_BLOCK_ALGORITHM void each_key(KernelBlock& block, DgcShared& shared,
                                       const DgcTables& tables, const DgcSpan& span, F&& take) {
  const DgcSource source = span.state->source;
  const std::uint32_t items = span_items(block, shared, tables, span, source);
  for (std::uint32_t round = 0; round < items; round += 4 * kBlockThreads) {
    block.each([&](int thread) {
      DgcItems got;
      load_items(shared, tables, span, source, items,
                 round + 4 * static_cast<std::uint32_t>(thread), got);
      for (const std::uint32_t key : got.key) {
        if (key != kNoKey) take(thread, key);
      }
    });
  }
}

// Returns the smallest magnitude that the update lists as a candidate; 0: it lists none.
SYNCLINE_BLOCK_ALGORITHM std::uint32_t dgc_guess(const DgcTensorState& state, const DgcStep& step) {
  const std::uint32_t guess = key_of(float_of(state.last) * step.candidate_scale);
  return guess < kKeyEnd ? guess : 0;
}

using DgcRows = TensorTable<DgcRow, 300>;
static_assert(sizeof(DgcRows) + sizeof(DgcTables) + 64 <= kArgumentBytes);

// Prepares the first step: writes the row of a tensor and the map from spans to tensors, clears
// state and histogram.
__global__ void __launch_bounds__(kBlockThreads)
    dgc_prepare_kernel(DgcTables tables, const __grid_constant__ DgcRows rows,
                       std::uint32_t first) {
  const DgcRow& row = rows.entries[blockIdx.x];
  const std::uint32_t tensor = first + blockIdx.x;
  KernelBlock block;
  block.each([&](int thread) {
    std::uint32_t* histogram = tables.histograms + static_cast<std::int64_t>(tensor) * kDgcBins;
    for (int bin = thread; bin < kDgcBins; bin += kBlockThreads) histogram[bin] = 0;
    for (auto span = static_cast<std::uint32_t>(thread); span < row.spans; span += kBlockThreads) {
      tables.span_tensor[row.first_span + span] = tensor;
    }
    if (thread != 0) return;
    tables.rows[tensor] = row;
    tables.states[tensor] = DgcTensorState{};
  });
}

// Ends a round of counting: the tensor's last block decides how to go on.
SYNCLINE_BLOCK_ALGORITHM void end_first_round(KernelBlock& block, DgcShared& shared,
                                              const DgcSpan& span, std::uint32_t from,
                                              bool speculative, bool recounted) {
  flush_histogram(block, shared, span.histogram);
  if (!block.last_of(&span.state->done, span.row.spans)) return;
  const std::uint32_t total = find_bin(block, shared, span.histogram, span.row.kept);
  block.each([&](int thread) {
    if (thread == 0) {
      decide_source(span.row, shared, total, from, speculative, recounted, span.state);
    }
  });
}

// A thread has 6 loads of 16 bytes in flight: 123 KB on a multiprocessor. 4.8 TB/s over 132
// multiprocessors at 700 ns need 26 KB.
__global__ void __launch_bounds__(kBlockThreads, 5)
    dgc_update_kernel(DgcTables tables, DgcStep step) {
  __shared__ DgcShared shared;
  KernelBlock block;
  const DgcSpan span = span_of_block(tables);
  const DgcRow& row = span.row;
  DgcTensorState* state = span.state;
  const std::uint32_t guess = dgc_guess(*state, step);
  const std::uint32_t from = counted_from(guess);
  clear_histogram(block, shared);
  for (std::uint32_t i = 0; i < span.tiles; ++i) {
    const std::uint32_t tile = span.first_tile + i;
    KernelBlock::Each<DgcThreadTile> values;
    block.each([&](int thread) {
      update_elements(row, step.momentum, tile, thread, &state->held, values[thread]);
      count_elements(shared, row, tile, thread, from, values[thread]);
    });
    if (guess != 0) list_tile(block, shared, tables, row, state, tile, guess, values);
  }
  end_first_round(block, shared, span, from, guess != 0, false);
}

__global__ void __launch_bounds__(kBlockThreads, 5) dgc_recount_kernel(DgcTables tables) {
  __shared__ DgcShared shared;
  KernelBlock block;
  const DgcSpan span = span_of_block(tables);
  if (span.state->source != DgcSource::kRecount) return;
  const DgcRow& row = span.row;
  clear_histogram(block, shared);
  for (std::uint32_t i = 0; i < span.tiles; ++i) {
    const std::uint32_t tile = span.first_tile + i;
    block.each([&](int thread) {
      DgcThreadTile values;
      load_residuals(row, tile, thread, values);
      count_elements(shared, row, tile, thread, 0, values);
    });
  }
  end_first_round(block, shared, span, 0, false, true);
}

__global__ void __launch_bounds__(kBlockThreads, 5) dgc_collect_kernel(DgcTables tables) {
  __shared__ DgcShared shared;
  KernelBlock block;
  const DgcSpan span = span_of_block(tables);
  DgcTensorState* state = span.state;
  if (state->source != DgcSource::kCollect) return;
  const DgcRow& row = span.row;
  const std::uint32_t edge = state->prefix << 20;
  for (std::uint32_t i = 0; i < span.tiles; ++i) {
    const std::uint32_t tile = span.first_tile + i;
    KernelBlock::Each<DgcThreadTile> values;
    block.each([&](int thread) { load_residuals(row, tile, thread, values[thread]); });
    list_tile(block, shared, tables, row, state, tile, edge, values);
  }
}

// Finds the next ten bits of the threshold: `shift` is 10, then 0.
__global__ void __launch_bounds__(kBlockThreads, 5) dgc_refine_kernel(DgcTables tables, int shift) {
  __shared__ DgcShared shared;
  KernelBlock block;
  const DgcSpan span = span_of_block(tables);
  DgcTensorState* state = span.state;
  if (state->settled != 0) return;
  const std::uint32_t prefix = state->prefix;
  clear_histogram(block, shared);
  each_key(block, shared, tables, span, [&](int, std::uint32_t key) {
    if ((key >> (shift + 10)) != prefix) return;
    KernelBlock::fetch_add(&shared.histogram[(key >> shift) & 1023u], 1);
  });
  flush_histogram(block, shared, span.histogram);
  if (!block.last_of(&state->done, span.row.spans)) return;
  find_bin(block, shared, span.histogram, state->rank);
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

// Turns the counts of a tensor's spans into the counts of the spans before each. Stores the number
// of elements selected and the guess for the next step.
SYNCLINE_BLOCK_ALGORITHM void sum_up_spans(KernelBlock& block, const DgcTables& tables,
                                           const DgcRow& row, DgcTensorState* state) {
  DgcSpanCount* counts = tables.span_counts + row.first_span;
  DgcSpanCount before{0, 0};
  for (std::uint32_t round = 0; round < row.spans; round += kBlockThreads) {
    KernelBlock::Each<std::uint32_t> greater;
    KernelBlock::Each<std::uint32_t> ties;
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

__global__ void __launch_bounds__(kBlockThreads, 5) dgc_count_kernel(DgcTables tables) {
  __shared__ DgcShared shared;
  KernelBlock block;
  const DgcSpan span = span_of_block(tables);
  const DgcRow& row = span.row;
  DgcTensorState* state = span.state;
  const std::uint32_t threshold = state->threshold;
  KernelBlock::Each<DgcSpanCount> counts;
  block.each([&](int thread) { counts[thread] = {0, 0}; });
  each_key(block, shared, tables, span, [&](int thread, std::uint32_t key) {
    counts[thread].greater += key > threshold ? 1 : 0;
    counts[thread].ties += key == threshold ? 1 : 0;
  });
  KernelBlock::Each<std::uint32_t> greater;
  KernelBlock::Each<std::uint32_t> ties;
  block.each([&](int thread) {
    greater[thread] = counts[thread].greater;
    ties[thread] = counts[thread].ties;
  });
  const std::uint32_t all_greater = block.exclusive_sum(greater);
  const std::uint32_t all_ties = block.exclusive_sum(ties);
  block.each([&](int thread) {
    if (thread == 0) tables.span_counts[blockIdx.x] = {all_greater, all_ties};
  });
  if (block.last_of(&state->done, row.spans)) sum_up_spans(block, tables, row, state);
}

// Fills a tensor's part of the message with pads from `from` on, and writes its report.
SYNCLINE_BLOCK_ALGORITHM void end_message(KernelBlock& block, const DgcRow& row,
                                          const DgcStep& step, std::uint32_t from,
                                          DgcReport* report, const DgcReport& written) {
  block.each([&](int thread) {
    for (std::int64_t at = static_cast<std::int64_t>(from) + thread;
         at < static_cast<std::int64_t>(row.kept); at += kBlockThreads) {
      step.indices[row.packed_at + at] = kPadIndex;
      step.values[row.packed_at + at] = 0.0f;
    }
    if (thread == 0) *report = written;
  });
}

__global__ void __launch_bounds__(kBlockThreads, 5)
    dgc_write_kernel(DgcTables tables, DgcStep step) {
  __shared__ DgcShared shared;
  KernelBlock block;
  const DgcSpan span = span_of_block(tables);
  const DgcRow& row = span.row;
  DgcTensorState* state = span.state;
  DgcReport* report = &step.reports[span.tensor];
  const DgcSource source = state->source;
  const std::uint32_t threshold = state->threshold;
  const std::uint32_t ties_sent = state->ties;
  const std::uint32_t items = span_items(block, shared, tables, span, source);
  DgcSpanCount before = tables.span_counts[blockIdx.x];
  for (std::uint32_t round = 0; round < items; round += 4 * kBlockThreads) {
    KernelBlock::Each<DgcItems> got;
    // Two counts in one number, each at most 1024: lower half, those greater than the threshold.
    KernelBlock::Each<std::uint32_t> places;
    block.each([&](int thread) {
      load_items(shared, tables, span, source, items,
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

// ---- The plan -----------------------------------------------------------------------------------

constexpr std::int64_t kMaxElements = 0xffffffffll;
// An H200 runs 132 x 5 blocks of the update at once. Eight times that number of spans evens out the
// end, and a span is long enough to make its histogram's 8 KB cheap.
constexpr std::int64_t kAimedSpans = 8ll * 132 * 5;
constexpr std::int64_t kMinSpanTiles = 4;
// Residuals concentrate just under the threshold: the median number of candidates from 0.95 of it
// on is 2 to 7 times the number sent, so 16 times leaves room.
constexpr std::int64_t kListedPerKept = 16;
constexpr std::int64_t kListedAtLeast = 1024;
constexpr std::int64_t kListedBelow = 32;  // a list only if at most one in 32 is kept

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
  row.gradient_aligned = is_aligned<4>(tensor.gradient, -shift);
  row.velocity_aligned = is_aligned<4>(tensor.velocity, -shift);
  row.residual_aligned = is_aligned<4>(tensor.residual, -shift);
  row.all_aligned = row.gradient_aligned && row.velocity_aligned && row.residual_aligned;
  const std::int64_t slots = tensor.elements == 0 ? 0 : tensor.elements + shift;
  row.tiles = static_cast<std::uint32_t>((slots + kDgcTile - 1) / kDgcTile);
  return row;
}

// Returns the tables of a plan in a workspace at `base`; sets `bytes` to the workspace's size.
DgcTables tables_of(const DgcPlan& plan, void* base, std::size_t* bytes) {
  const auto tensors = static_cast<std::int64_t>(plan.tensors.size());
  DgcTables tables{};
  *bytes = 0;
  place_part(base, bytes, tensors, &tables.rows);
  place_part(base, bytes, tensors, &tables.states);
  place_part(base, bytes, tensors * kDgcBins, &tables.histograms);
  place_part(base, bytes, plan.spans, &tables.span_tensor);
  place_part(base, bytes, plan.spans, &tables.span_counts);
  place_part(base, bytes, plan.tiles, &tables.tiles);
  place_part(base, bytes, plan.listed, &tables.list_indices);
  place_part(base, bytes, plan.listed, &tables.list_values);
  tables.span_tiles = plan.span_tiles;
  return tables;
}

// Returns the rows of a plan's tensors; sets its counts.
std::vector<DgcRow> rows_of(DgcPlan* plan) {
  plan->spans = plan->tiles = plan->listed = plan->packed = 0;
  std::vector<DgcRow> rows;
  for (const DgcTensor& tensor : plan->tensors) {
    DgcRow& row = rows.emplace_back(row_of(tensor));
    row.first_tile = plan->tiles;
    row.list_at = plan->listed;
    row.packed_at = plan->packed;
    plan->tiles += row.tiles;
    plan->listed += row.capacity;
    plan->packed += row.kept;
  }
  plan->span_tiles = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(plan->tiles / kAimedSpans, kMinSpanTiles, kDgcMaxSpanTiles));
  for (DgcRow& row : rows) {
    row.spans = std::max(1u, (row.tiles + plan->span_tiles - 1) / plan->span_tiles);
    row.first_span = static_cast<std::uint32_t>(plan->spans);
    plan->spans += row.spans;
  }
  return rows;
}

}  // namespace

Status dgc_plan(const std::vector<DgcTensor>& tensors, DgcPlan* plan) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].elements >= 0 && tensors[i].elements <= kMaxElements) continue;
    return failure("dgc_plan: tensor " + std::to_string(i) + " has " +
                   std::to_string(tensors[i].elements) + " elements, not 0 to 4294967295");
  }
  DgcPlan made;
  made.tensors = tensors;
  rows_of(&made);
  if (made.spans > 0x7fffffffll) return failure("dgc_plan: too many elements for one launch");
  tables_of(made, nullptr, &made.workspace_bytes);
  *plan = std::move(made);
  return {};
}

Status dgc_prepare(DgcPlan* plan, void* workspace, cudaStream_t stream) {
  const std::vector<DgcRow> rows = rows_of(plan);
  const DgcTables tables = tables_of(*plan, workspace, &plan->workspace_bytes);
  plan->workspace = workspace;
  return in_tables<DgcRows>(rows, [&](const DgcRows& some, LaunchGrid grid, std::uint32_t first) {
    return launch("dgc_prepare_kernel", dgc_prepare_kernel, grid, stream, tables, some, first);
  });
}

Status dgc_step(const DgcPlan& plan, const DgcStep& step, cudaStream_t stream) {
  if (plan.spans == 0) return {};
  std::size_t bytes = 0;
  const DgcTables tables = tables_of(plan, plan.workspace, &bytes);
  const LaunchGrid grid{static_cast<unsigned>(plan.spans)};
  Status status = launch("dgc_update_kernel", dgc_update_kernel, grid, stream, tables, step);
  const auto next = [&](const char* name, auto kernel, auto... more) {
    if (status.ok()) status = launch(name, kernel, grid, stream, tables, more...);
  };
  next("dgc_recount_kernel", dgc_recount_kernel);
  next("dgc_collect_kernel", dgc_collect_kernel);
  next("dgc_refine_kernel", dgc_refine_kernel, 10);
  next("dgc_refine_kernel", dgc_refine_kernel, 0);
  next("dgc_count_kernel", dgc_count_kernel);
  next("dgc_write_kernel", dgc_write_kernel, step);
  return status;
}

}  // namespace syncline::kernels
