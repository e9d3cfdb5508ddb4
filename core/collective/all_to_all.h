// All to all: each member sends each other member that one's part directly, which sums what it
// gets; then each sends its sum to all. Two rounds with as few bytes as the ring. A number is
// rounded twice on its way, however many members there are, so it suits gradients of low precision
// (compress::Codec::block), which no library sums. It is no row of algorithms(): the links know no
// cost of many messages that arrive at once, and searches would choose it everywhere.
#pragma once

#include "core/collective/algorithm.h"

namespace syncline::collective {

// Fits all_reduce, reduce_scatter (the exchange itself, with a sum) and all_gather, among at most
// kMostAllToAll members: there is a message between any two.
inline constexpr int kMostAllToAll = 1024;
const Algorithm* all_to_all();

}  // namespace syncline::collective
