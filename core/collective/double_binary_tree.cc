#include "core/collective/guarded.h"

#include <algorithm>
#include <bit>

namespace syncline::collective {
namespace two_trees {
namespace {

// Returns a place's height in an in-order binary tree over places 1 to `size`: its lowest set bit.
// Odd places are leaves, even places have children, and the root is the largest power of two. A
// parent above `size` is replaced by the next one above it.
int height_of(int place) { return std::countr_zero(static_cast<unsigned>(place)); }

int tree_height(int size) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(size))) - 1;
}

int parent_of(int place, int size) {  // 0: the root has none
  const int bit = 1 << height_of(place);
  const int parent = (place ^ bit) | (bit << 1);
  return parent <= size ? parent : place ^ bit;
}

int depth_of(int place, int size) {
  int depth = 0;
  while ((place = parent_of(place, size)) != 0) ++depth;
  return depth;
}

// Returns the member at a place, from 0: in tree 0 in order; in tree 1 mirrored if `size` is even,
// else shifted by one. So a member with children in one tree has an odd place in the other.
int sitter(int tree, int place, int size) {
  if (tree == 0) return place - 1;
  return size % 2 == 0 ? size - place : place % size;
}

// An edge of one tree, on the way up (adding) or down (overwriting). It carries chunk r - start of
// its tree's half of the payload in round r.
struct TreeEdge {
  int tree = 0;
  int from = 0;
  int to = 0;
  bool add = false;
  int start = 0;
};

// All edges of both trees, and the number of rounds that start edges.
//
// In an all-reduce both trees contain all members. A chunk climbs one level per round: the edge
// above a place of height h starts in round h, after all edges below that place. The root has the
// sum of the first chunk after `levels` = floor(log2 N) rounds, and the edge below a place of
// depth d then starts in round levels + d. With c chunks (of 1/(2c) of the payload in each tree)
// that makes c + 2*levels - 1 rounds.
//
// In a reduce or a broadcast the trees contain members 1 to N-1 and member 0 is above both
// roots: levels = floor(log2(N-1)) + 1 of one way, c + levels - 1 rounds.
struct TwoTrees {
  std::vector<TreeEdge> edges;
  int starts = 0;  // edges start in rounds 0 to starts-1, at least one in each
};

// Returns the levels of both directions together.
int starts_of(CollectiveKind kind, int ranks) {
  if (kind == CollectiveKind::kAllReduce) return 2 * tree_height(ranks);
  return tree_height(ranks - 1) + 1;
}

TwoTrees two_trees(CollectiveKind kind, int ranks) {
  const bool headed = kind != CollectiveKind::kAllReduce;
  const int base = headed ? 1 : 0;
  const int size = ranks - base;
  const int levels = tree_height(size) + base;
  const bool climbs = kind != CollectiveKind::kBroadcast;
  const bool descends = kind != CollectiveKind::kReduce;

  TwoTrees trees;
  trees.starts = starts_of(kind, ranks);
  for (int tree = 0; tree < 2; ++tree) {
    for (int place = 1; place <= size; ++place) {
      const int above = parent_of(place, size);
      if (above == 0 && !headed) continue;
      const int child = base + sitter(tree, place, size);
      const int parent = above == 0 ? 0 : base + sitter(tree, above, size);
      const int parent_depth = depth_of(place, size) + base - 1;
      if (climbs) trees.edges.push_back({tree, child, parent, true, height_of(place)});
      if (descends) {
        trees.edges.push_back({tree, parent, child, false, (climbs ? levels : 0) + parent_depth});
      }
    }
  }
  return trees;
}

bool fits(CollectiveKind kind, int) {
  return kind != CollectiveKind::kReduceScatter && kind != CollectiveKind::kAllGather;
}

// Returns chunks; 1 for two members, because neither passes chunks on while more arrive.
std::int64_t chunks(CollectiveKind, int ranks, std::int64_t elements) {
  return ranks > 2 ? pipeline_chunks(elements) : 1;
}

Schedule rounds(CollectiveKind kind, int ranks, std::int64_t elements) {
  const TwoTrees trees = two_trees(kind, ranks);
  const std::int64_t count = chunks(kind, ranks, elements);
  Schedule rounds;
  for (std::int64_t r = 0; r < count + trees.starts - 1; ++r) {
    Round& round = rounds.emplace_back();
    for (const TreeEdge& edge : trees.edges) {
      const std::int64_t chunk = r - edge.start;
      if (chunk < 0 || chunk >= count) continue;
      const Range half = part_of(elements, 2, edge.tree);
      const Range part = part_of(half.size(), count, chunk);
      if (part.size() == 0) continue;
      const Range range = {half.begin + part.begin, half.begin + part.end};
      round.push_back({edge.from, edge.to, range, edge.add});
    }
  }
  return rounds;
}

// Returns the edges that start in the same round, as a set: they are busy together. Two members may
// be joined in both trees: their messages stay two, and share a link as two.
EdgeSets edges(CollectiveKind kind, int ranks) {
  const TwoTrees trees = two_trees(kind, ranks);
  EdgeSets sets(static_cast<std::size_t>(trees.starts));
  for (const TreeEdge& edge : trees.edges) {
    sets[static_cast<std::size_t>(edge.start)].push_back({edge.from, edge.to});
  }
  return sets;
}

Stages stages(CollectiveKind kind, int ranks, std::int64_t elements) {
  const std::int64_t count = chunks(kind, ranks, elements);
  return pipelined_stages(starts_of(kind, ranks), count, 0.5 / static_cast<double>(count));
}

// In half chunks (1/(2c) of the payload), a rank with two children that is busy on the way up
// receives 2 and sends 2 (to its parent, and as a leaf of the other tree), and the same on the way
// down: while only one direction runs, a round costs 2. So a reduce or a broadcast costs 2 in each
// of its rounds, volume (c + levels - 1) / c.
//
// An all-reduce has 2*levels rounds with one direction and c-1 with both. The latter cost 4 in the
// steady state, volume 2 for large c, but 3 if the first or last chunks leave no rank busy in both
// directions on both sides: 2 of the rounds if the chunks are at least 2*levels - 1, so that
// all edges are busy at once, and more with fewer. (Of two chunks the last still climbs as the
// first descends, one round of 2: counted as if it were two of 3.) A single chunk costs 1
// instead of 2 if the root has no two equal children: going up if they differ in height
// (N < 3/4 of the full tree), and in both directions if it has one (N a power of two).
//
// Two ranks have no rank that is busy both ways, three have none between root and leaf; both are
// special cases. All-reduces of one chunk and of at least max(3, 2*levels - 1) are exact. In
// between, how many rounds cost 3 depends on how full the tree is, and the formula is at most 1
// half chunk too high or max(1, levels/2) too low; reduce and broadcast are at most 1 too high, if
// the last round has no rank with two busy edges.
double all_reduce_half_chunks(int ranks, double count) {
  if (ranks == 2) return 2 * count;
  if (ranks == 3) return 3 * count + 1;

  const int levels = tree_height(ranks);
  if (count == 1) {
    const bool alike = ranks >= 3 << std::max(levels - 1, 0);
    const bool lone = ranks == 1 << levels;
    return 4.0 * levels - (lone ? 2 : alike ? 0 : 1);
  }
  const double threes = std::max(2.0, std::min(count - 1, 2 * levels + 1 - count));
  return 4 * levels + 4 * (count - 1) - threes;
}

Cost cost(CollectiveKind kind, int ranks, std::int64_t elements) {
  const auto count = static_cast<double>(chunks(kind, ranks, elements));
  if (kind == CollectiveKind::kAllReduce) {
    const double steps = count + 2 * tree_height(ranks) - 1;
    return {steps, all_reduce_half_chunks(ranks, count) / (2 * count)};
  }
  const double steps = count + tree_height(ranks - 1);  // one less than levels
  return {steps, steps / count};
}

}  // namespace
}  // namespace two_trees

Algorithm double_binary_tree_algorithm() {
  return guarded_algorithm<two_trees::fits, two_trees::rounds, two_trees::edges, two_trees::stages,
                           two_trees::cost, two_trees::chunks>(
      "double_binary_tree", "two pipelined trees, half of the payload each: log N steps");
}

}  // namespace syncline::collective
