// The Inspector's lines, joined over ranks.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/cost/measured_table.h"

namespace syncline::calibrate {

class JoinedRanks {
 public:
  // Throws InputError, naming file and line.
  void add(const std::string& file, int line, std::string_view text);

  // `source` names all files. Throws InputError, naming it, where no collective is complete.
  std::vector<cost::MeasuredTable> tables(const std::string& source) const;

 private:
  // One collective, as far as its ranks were read.
  struct Joined {
    std::string kind;  // "all_reduce"; empty: none that nccl-tests knows
    int ranks = 0;
    int nodes = 0;
    Bytes size = 0;  // as nccl-tests counts
    Seconds least = 0;
    std::vector<bool> seen;  // by rank
    bool agree = true;       // all ranks tell the same collective
  };
  // Communicator, collective as NCCL names it, coll_sn.
  using Key = std::tuple<std::string, std::string, std::int64_t>;
  // Kind, ranks, nodes.
  using Shape = std::tuple<std::string, int, int>;
  // What tables() makes of the collectives that all ranks told.
  struct Measured {
    std::map<Shape, std::map<Bytes, std::vector<Seconds>>> times;
    std::map<Shape, std::size_t> incomplete;
    std::size_t uneven = 0;
    std::size_t disagreeing = 0;
    int most_ranks = 0;  // that told of one incomplete collective
  };

  Measured measured() const;
  std::vector<std::string> dropped(const Measured& measured) const;

  std::map<Key, Joined> collectives_;
  std::size_t host_timed_ = 0;
  std::set<std::string> host_sources_;
  std::size_t timeless_ = 0;
  std::size_t repeated_ = 0;
  std::map<std::pair<std::string, int>, std::int64_t> lost_;  // by communicator and rank
};

}  // namespace syncline::calibrate
