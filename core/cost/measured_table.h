// A table of measured collectives, as nccl-tests prints one: what each size took, on how many
// ranks, and what was odd about the log. Inside there are seconds, bytes and bytes per second.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.h"
#include "core/collective/schedule.h"

namespace syncline::cost {

// "all_reduce", as a plan can ask for it; nothing for another word.
std::optional<collective::CollectiveKind> kind_named(std::string_view name);

// One size. nccl-tests measures each size twice: out of place and in place.
struct MeasuredRow {
  Bytes size = 0;          // the larger of what a rank sends and receives: ranks x count for
                           // all-gather and reduce-scatter
  std::int64_t count = 0;  // elements, as the test counts them
  std::string type;        // "float", "half", ...
  std::string redop;       // "sum", "none", ...; empty in layouts without that column
  std::optional<Seconds> out_of_place;  // time of one call; empty: not measured
  std::optional<Seconds> in_place;
  std::optional<double> out_of_place_wrong;  // elements with a wrong result; empty: not checked
  std::optional<double> in_place_wrong;
  BytesPerSecond out_of_place_alg = 0;  // size / time as printed, 0: unknown
  // Where out_of_place is the median of many times, the standard deviation of its logarithm; 0:
  // nothing speaks of it.
  double spread = 0;
};

// What NCCL was made to take (NCCL_ALGO): the log states it, or its user does.
enum class ForcedAlgorithm { kNone, kRing, kTree };

struct MeasuredTable {
  std::string source;  // the file
  int line = 0;        // where the table begins in it
  std::string test;    // "all_reduce", "all_gather", "alltoall", "sendrecv", ...; empty: unknown
  // Of `test`, where it is one that a plan can hold.
  std::optional<collective::CollectiveKind> kind;
  int ranks = 0;  // 0: unknown, as in the two below
  int nodes = 0;
  int gpus_per_node = 0;
  std::string nccl_version;  // "2.18.3", empty: unknown
  ForcedAlgorithm forced = ForcedAlgorithm::kNone;
  std::string other_algorithm;  // that NCCL was made to take, neither ring nor tree: "NVLS"
  // NCCL's environment, as the log states it: NCCL_PROTO, "Simple".
  std::map<std::string, std::string> settings;
  bool failed = false;  // the test says that its results were wrong, or it ended with an error
  bool mixed = false;   // rows are of different numbers of ranks, and nothing tells which
  // What tells this table from others that were printed as one: the type and operation of its rows,
  // their root where there is one, and the words in columns of the user's own.
  std::string type;
  std::string redop;
  int root = -1;    // -1: none
  std::string own;  // "p4dn 2"; empty: no such column
  std::vector<MeasuredRow> rows;
  std::string device;  // of the GPUs, as the log names it: "NVIDIA H100 80GB HBM3"; or empty
  std::vector<std::string> notes;     // what was odd, a sentence each
  std::vector<std::string> left_out;  // times that no fit uses, a sentence each, with their line
};

// Which of a row's two measurements.
enum class Place { kOutOfPlace, kInPlace };

struct MeasuredPoint {
  Bytes size = 0;
  Seconds time = 0;
};

// What a fit may use, by ascending size: rows of size 0, without a time, or with wrong results in
// that column are left out; of a size that was measured several times the median stays.
std::vector<MeasuredPoint> usable_points(const MeasuredTable& table, Place place);

// Returns whether the two measurements of each size agree: |in place / out of place - 1| below 6 %
// in the median and below 30 % at the 90th percentile of the sizes that have both. What differs by
// more was disturbed by something else than its size. A time that is a median of many is held
// against its own spread. False with fewer than three such sizes, and for a test that failed.
bool is_clean(const MeasuredTable& table);

// Returns whether both are of one collective on the same counts, by the same algorithm.
bool same_shape(const MeasuredTable& a, const MeasuredTable& b);

// Puts in the shape that a caller knows better than the log. Throws InputError where the product
// contradicts the ranks that the log shows.
void set_shape(MeasuredTable& table, int nodes, int gpus_per_node);

}  // namespace syncline::cost
