// A table of measured collectives in the form of nccl-tests: the time of each size, the ranks, and
// anomalies of the log. Seconds, bytes and bytes per second.
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

// Returns the kind of a plan's collective by its name, "all_reduce"; empty for other words.
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
  // Standard deviation of its logarithm, if out_of_place is the median of many times; 0: unknown.
  double spread = 0;
};

// The algorithm that NCCL was forced to (NCCL_ALGO), by the log or its user.
enum class ForcedAlgorithm { kNone, kRing, kTree };

struct MeasuredTable {
  std::string source;  // the file
  int line = 0;        // where the table begins in it
  std::string test;    // "all_reduce", "all_gather", "alltoall", "sendrecv", ...; empty: unknown
  // Kind of `test`, if a plan can contain it.
  std::optional<collective::CollectiveKind> kind;
  int ranks = 0;  // 0: unknown, like the next two
  int nodes = 0;
  int gpus_per_node = 0;
  int least_ranks = 0;       // by busbw / algbw; 0: not known
  int most_ranks = 0;        // 0: not known, or any number
  std::string nccl_version;  // "2.18.3", empty: unknown
  ForcedAlgorithm forced = ForcedAlgorithm::kNone;
  std::string other_algorithm;  // other forced algorithm than ring and tree: "NVLS"
  // NCCL's environment by the log: NCCL_PROTO, "Simple".
  std::map<std::string, std::string> settings;
  bool failed = false;  // the test reports wrong results, or it ended with an error
  bool mixed = false;   // rows are of different, unknown numbers of ranks
  // Keys of this table if several were printed as one: the type and operation of its rows, their
  // root if any, and the user's own columns.
  std::string type;
  std::string redop;
  int root = -1;    // -1: none
  std::string own;  // "p4dn 2"; empty: no such column
  std::vector<MeasuredRow> rows;
  std::string device;  // of the GPUs, as the log names it: "NVIDIA H100 80GB HBM3"; or empty
  std::vector<std::string> notes;     // anomalies, a sentence each
  std::vector<std::string> left_out;  // times that no fit uses, a sentence each, with line
};

// One of a row's two measurements.
enum class Place { kOutOfPlace, kInPlace };

struct MeasuredPoint {
  Bytes size = 0;
  Seconds time = 0;
};

// Returns the points for a fit, by ascending size: no rows of size 0, without a time, or with wrong
// results in that column; the median for a size measured several times.
std::vector<MeasuredPoint> usable_points(const MeasuredTable& table, Place place);

// True if the two measurements of each size agree. |in place / out of place - 1| must be below 6 %
// in the median and below 30 % at the 90th percentile of the sizes that have both. Larger
// differences mean a disturbed test. A time that is a median of many is compared by its own spread.
// False with fewer than three such sizes, and for a test that failed.
bool is_clean(const MeasuredTable& table);

// True if both are of one collective on the same counts, by the same algorithm.
bool same_shape(const MeasuredTable& a, const MeasuredTable& b);

// Sets a shape that a caller knows better than the log. Throws InputError if the product
// contradicts the ranks of the log.
void set_shape(MeasuredTable& table, int nodes, int gpus_per_node);

}  // namespace syncline::cost
