// The parts of Paddle's DistributedStrategy that change what is exchanged and when: DGC
// (meta_optimizers/dgc_optimizer.py, operators/dgc_op.h) and LocalSGD, fixed and adaptive
// (meta_optimizers/localsgd_optimizer.py).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dialect/dialect.h"
#include "core/json/reader.h"

namespace syncline::dialect {

struct PaddleTraining {
  Compression compression;  // its codec is empty without DGC
  LocalSgd local_sgd;
};

// Reads dgc, localsgd, adaptive_localsgd and their configs. With one worker none of them applies.
PaddleTraining read_paddle_training(Reader& config, const Workload& workload,
                                    const Cluster& cluster, std::vector<std::string>& notes);

// Values as the property setters of Paddle's DistributedStrategy take them: one of another type is
// no error there. Paddle prints "WARNING: KEY should have value of TYPE type" and keeps what stood
// before; so do these, and leave a note.

class PaddleSetters {
 public:
  PaddleSetters(Reader& config, std::vector<std::string>& notes) : config_(config), notes_(notes) {}

  bool flag(std::string_view key, bool before);
  // An int32 field; Python's True and False are ints too.
  std::int64_t integer(std::string_view key, std::int64_t before);
  // A float field; the int 50 is not one, 50.0 is.
  double real(std::string_view key, double before);

 private:
  void ignored(std::string_view key, const Json& value, const char* type, const Json& kept);

  Reader& config_;
  std::vector<std::string>& notes_;
};

// Paddle's hierarchical all-reduce: what hierarchical_allreduce_inter_nranks means to the code
// (ranks a group) and to the documents (the number of leaders).

// Checks `inter_nranks` as Paddle does. Requires use_hierarchical_allreduce and more than one rank.
Hierarchy read_paddle_hierarchy(Reader& config, std::int64_t inter_nranks, const Cluster& cluster,
                                bool as_documents, std::vector<std::string>& notes);

}  // namespace syncline::dialect
