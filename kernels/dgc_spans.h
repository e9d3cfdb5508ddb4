// The seven launches of a step: what one block does in each of them with one span. They follow each
// other in this order; each finds in the tensor's state what the ones before found out.
//
//   update   u, v; histogram; speculative list     R g u v, W u v
//   recount  histogram, where the guess hid some   R v
//   collect  list, from the histogram's edge       R v
//   refine   two more histograms, of the list      (two launches)
//   count    how many each span sends              and where its part of the message begins
//   write    message, masking, report
#pragma once

#include <cmath>

#include "kernels/dgc_select.h"

namespace syncline::kernels {

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

SYNCLINE_HOST_DEVICE inline bool dgc_skips(const DgcStep& step) {
  return step.skip != nullptr && *step.skip != 0;
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
    tables.coefficients[tensor] = 1.0f;
    if (tensor == 0) *tables.skip = 0;
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

template <typename Gradient, bool kNesterov, bool kDecay, typename Block>
SYNCLINE_BLOCK_ALGORITHM void dgc_update_span(Block& block, DgcShared& shared,
                                              const DgcTables& tables, const DgcStep& step,
                                              bool select, std::uint32_t number) {
  if (dgc_skips(step)) return;
  const DgcSpan span = dgc_span(tables, number);
  const DgcRow& row = tables.rows[span.tensor];
  DgcTensorState* state = &tables.states[span.tensor];
  const std::uint32_t guess = select ? dgc_guess(*state, step) : 0;
  const std::uint32_t from = counted_from(guess);
  const std::uint32_t which = step.one_coefficient ? 0 : span.tensor;
  const float coefficient = step.coefficients == nullptr ? 1.0f : step.coefficients[which];
  const float scale = coefficient * step.scale;
  clear_histogram(block, shared);
  for (std::uint32_t i = 0; i < span.tiles; ++i) {
    const std::uint32_t tile = span.first_tile + i;
    typename Block::template Each<DgcThreadTile> values;
    block.each([&](int thread) {
      update_elements<Gradient, kNesterov, kDecay>(row, step, scale, tile, thread, &state->held,
                                                   values[thread]);
      if (select) count_elements<Block>(shared, row, tile, thread, from, values[thread]);
    });
    if (guess != 0) list_tile(block, shared, tables, row, state, tile, guess, values);
  }
  if (select) end_first_round(block, shared, tables, row, span.tensor, from, guess != 0, false);
}

template <typename Block>
SYNCLINE_BLOCK_ALGORITHM void dgc_recount_span(Block& block, DgcShared& shared,
                                               const DgcTables& tables, const DgcStep& step,
                                               std::uint32_t number) {
  if (dgc_skips(step)) return;
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
                                               const DgcTables& tables, const DgcStep& step,
                                               std::uint32_t number) {
  if (dgc_skips(step)) return;
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
                                              const DgcTables& tables, const DgcStep& step,
                                              int shift, std::uint32_t number) {
  if (dgc_skips(step)) return;
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
                                             const DgcTables& tables, const DgcStep& step,
                                             std::uint32_t number) {
  if (dgc_skips(step)) return;
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
  if (dgc_skips(step)) {
    if (span.in_tensor == 0) {
      end_message(block, row, step, 0, report, {0, 0, 0, DgcPath::kSkipped});
    }
    return;
  }
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

// Squares of a span's gradients, summed in double in a fixed shape; the tensor's last block adds up
// the spans. What is not finite makes the sum not finite, as no sum of finite squares can be.
template <typename Gradient, typename Block>
SYNCLINE_BLOCK_ALGORITHM void dgc_inspect_span(Block& block, const DgcTables& tables,
                                               const DgcInspection& inspection,
                                               std::uint32_t number) {
  const DgcSpan span = dgc_span(tables, number);
  const DgcRow& row = tables.rows[span.tensor];
  DgcTensorState* state = &tables.states[span.tensor];
  typename Block::template Each<double> squares;
  block.each([&](int thread) {
    double sum = 0;
    for (std::uint32_t i = 0; i < span.tiles; ++i) {
      for (int group = 0; group < kDgcGroups; ++group) {
        float gradient[4];
        load_group<Reuse::kKeep>(static_cast<const Gradient*>(row.gradient),
                                 group_first(row, span.first_tile + i, group, thread), row.elements,
                                 row.gradient_aligned, gradient);
        for (const float g : gradient) sum += static_cast<double>(g) * static_cast<double>(g);
      }
    }
    squares[thread] = sum;
  });
  const double of_span = block.sum(squares);
  block.each([&](int thread) {
    if (thread == 0) tables.partial_squares[number] = of_span;
  });
  if (!block.last_of(&state->done, row.spans)) return;
  block.each([&](int thread) {
    double sum = 0;
    for (std::uint32_t at = static_cast<std::uint32_t>(thread); at < row.spans;
         at += kBlockThreads) {
      sum += tables.partial_squares[row.first_span + at];
    }
    squares[thread] = sum;
  });
  const double of_tensor = block.sum(squares);
  block.each([&](int thread) {
    if (thread != 0) return;
    if (!(of_tensor <= 1e300)) *tables.skip = 1;
    const double norm = sqrt(of_tensor);
    const double limit = static_cast<double>(inspection.max_norm);
    const bool clips = limit > 0 && norm > limit;
    tables.coefficients[span.tensor] = clips ? static_cast<float>(limit / norm) : 1.0f;
  });
}

}  // namespace syncline::kernels
