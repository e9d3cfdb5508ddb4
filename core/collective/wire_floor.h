// What the ports of a cluster need for a collective, whatever the algorithm: no cost that is not
// measured may lie below.
//
// A payload of S bytes goes to a group of N ranks. A port of a tier stands between the m members
// below it and the N - m others (0 < m < N); the group has members below U ports of the tier.
//
//                   into the port     out of it         over all ports of the tier, each way
//   all-reduce      S                 S                 2 (U-1) S
//   reduce-scatter  m/N S             (N-m)/N S         (U-1) S
//   all-gather      (N-m)/N S         m/N S             (U-1) S
//   reduce          S, at the root's  S, at the others' (U-1) S
//   broadcast       S, at the others' S, at the root's  (U-1) S
//
// The first two columns hold for any algorithm: the others' sum must come in and the members' sum
// go out, and a shard likewise. The third holds for messages between ranks: for each element
// somebody must be told U-1 times what the others have, and all-reduce tells the sum U-1 times more
// (one-way gossip takes 2U-2 messages; Harary and Schwenk 1974). Ports of a tier are alike, so the
// busiest carries at least the sum / U.
//
// A ring does more, in whatever order: each edge carries E = 2 (N-1)/N S of an all-reduce, (N-1)/N
// S of an all-gather or reduce-scatter, and enters and leaves every port that divides the group. A
// switch that adds up and copies (NVLS) does less: the third column does not hold inside the node.
//
// Groups side by side add up. A tier's time is the busiest port's bytes / bandwidth; behind an
// oversubscribed switch all that its own groups send / what the switch carries; with a cap on flows
// the bytes of a port / (cap * flows), of which a pair of ranks across the port has two at most
// (two trees), and a ring one a NIC. The floor is the slowest tier's time. It counts bytes alone:
// no latency, and shards as even, which they are but for an element.
#pragma once

#include "core/collective/collective.h"
#include "core/scenario/cluster.h"

namespace syncline::collective {

// Seconds. A collective that NCCL chose is taken to move as NCCL's algorithm does (ring, switch),
// every other as messages between ranks. 0 for groups of one and without tiers. Throws nothing.
Seconds wire_floor(const Cluster& cluster, const Collective& collective);

// The same for each byte of the payload. Takes time with the number of ranks.
double wire_seconds_per_byte(const Cluster& cluster, const Collective& collective);

}  // namespace syncline::collective
