// Traces of jobs that are cut into groups of ranks, of which every time is known: all ranks'
// programs are walked together, so that a collective ends once its last rank has come, and are
// written as torch's profiler writes them.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/index.h"
#include "tests/support/kineto_trace.h"

namespace syncline::test {

struct CutJob {
  int tensor = 1, context = 1, pipeline = 1, data = 1, micro_batches = 1;
  int shard = 0;               // FSDP2 in shard groups of so many; 0: Megatron
  int chunks = 1;              // model chunks a stage, interleaved
  int layers = 4;              // of a chunk
  int instances = 1;           // of Megatron's distributed optimizer
  int expert = 1;              // ranks that share the experts of a layer, neighbours
  bool inside = false;         // pipeline stages are neighbours, replicas far apart
  bool all_reduce = false;     // without the distributed optimizer
  bool wide_sums = false;      // gradients are summed in fp32
  bool behind = false;         // gradients are summed once the last backward pass is over
  bool next_sends = false;     // a bucket is sent by the gradient that no longer fits (DeepSpeed)
  bool shared_update = false;  // all_reduce: each rank updates a shard, and all are gathered
  int norms = 0;               // single values that are summed ahead of the update
  bool gpipe = false;          // all forward passes, then all backward passes
  bool losses = false;         // are averaged between passes
  bool whole_shapes = false;   // weights tell the shape that a tensor group holds together
  bool described = true;       // groups have descriptions
  bool named = true;           // and names and ranks
  int late_rank = -1;          // whose kernels take a tenth longer
  int steps = 3;

  int world() const { return tensor * context * pipeline * data; }
};

// What a rank's step was, by the walk itself.
struct CutTruth {
  Nano forward = 0, backward = 0, exposed = 0, stages = 0, update = 0;
  Nano begin = -1, end = 0;
  std::vector<Nano> waits;                          // of a pass's gradients, all passes summed
  std::map<std::string, std::pair<int, Nano>> use;  // of a group: calls, exposed
};

class CutTraces {
 public:
  explicit CutTraces(const CutJob& job) : job_(job), ranks_(index(job.world())) {
    for (int step = 0; step < job.steps; ++step) {
      for (int rank = 0; rank < job.world(); ++rank) write_program(rank);
      walk();
      for (int rank = 0; rank < job.world(); ++rank) print_step(rank, step);
    }
  }

  // The file of one rank.
  std::string file(int rank) const {
    return "{" + trace_head("NVIDIA H100 80GB HBM3", 8, rank, job_.world()) + ", " +
           trace_events(ranks_[index(rank)].events) + "}";
  }
  // Of the last step.
  const CutTruth& truth(int rank) const { return ranks_[index(rank)].truth; }

  static constexpr std::int64_t kWide = 5120, kHigh = 4096;  // a layer's weight; its bias is kHigh
  static constexpr std::int64_t kLayer = kWide * kHigh + kHigh;
  static constexpr std::int64_t kInner = 1024, kExpert = kInner * kHigh;  // an expert's weight
  static constexpr std::int64_t kActivation = 2 << 20;

 private:
  enum class Kind { kKernel, kStart, kWait, kArrive, kOptimizer };
  enum class Phase { kForward, kBackward, kUpdate };
  struct Op {
    Kind kind{};
    Phase phase{};
    Nano length = 0;      // of a kernel
    int collective = -1;  // of this rank's
    int behind = -1;      // a collective that it follows on its stream
    int gradient = -1;
  };
  struct Own {  // a collective, as this rank has it
    std::string group, kind;
    std::vector<int> ranks;  // of its group
    std::string key;         // the same on all its ranks
    int members = 0;
    std::int64_t given = 0, got = 0;
    Nano cost = 0, start = -1, end = -1;
  };
  struct Rank {
    std::vector<Op> ops;
    std::vector<Own> collectives;
    std::map<std::string, int> counts;
    std::map<std::string, int> streams;  // the last collective on each
    std::size_t at = 0;
    Nano now = 0;
    std::vector<std::pair<Nano, Nano>> kernels;  // by op: when it ran
    CutTruth truth;
    std::vector<std::string> events;
    int correlation = 0;
  };
  struct Rendezvous {
    int came = 0;
    Nano last = 0;
  };

  // Megatron's order: tensor, context, data, pipeline.
  int tensor_of(int rank) const { return rank % job_.tensor; }
  int context_of(int rank) const { return rank / job_.tensor % job_.context; }
  int data_of(int rank) const {
    return rank / (job_.tensor * job_.context * (job_.inside ? job_.pipeline : 1)) % job_.data;
  }
  int stage_apart() const { return job_.tensor * (job_.inside ? 1 : job_.context * job_.data); }
  int stage_of(int rank) const { return rank / stage_apart() % job_.pipeline; }

  std::vector<int> members(int rank, const std::string& group) const {
    std::vector<int> found;
    for (int other = 0; other < job_.world(); ++other) {
      const bool tensor = tensor_of(other) == tensor_of(rank);
      const bool context = context_of(other) == context_of(rank);
      const bool data = data_of(other) == data_of(rank);
      const bool stage = stage_of(other) == stage_of(rank);
      const bool shared = group == "ep" || group == "edp";
      const int block = shared           ? job_.expert
                        : job_.shard > 0 ? job_.shard
                                         : job_.data / job_.instances;
      const bool inner = data_of(other) / block == data_of(rank) / block;
      const bool outer = data_of(other) % block == data_of(rank) % block;
      const bool in = group == "tp"                       ? context && data && stage
                      : group == "cp"                     ? tensor && data && stage
                      : group == "pp"                     ? tensor && context && data
                      : group == "dp"                     ? tensor && stage
                      : group == "shard" || group == "ep" ? tensor && stage && inner
                                                          : tensor && stage && outer;
      if (in) found.push_back(other);
    }
    return found;
  }

  int start(int rank, const std::string& group, const std::string& kind, std::int64_t given,
            std::int64_t got, Nano cost, int behind = -1, int peer = -1,
            const std::string& way = "") {
    Rank& own = ranks_[index(rank)];
    const std::vector<int> ranks = members(rank, group);
    const std::vector<int> meet =
        peer < 0 ? ranks : std::vector<int>{std::min(rank, peer), std::max(rank, peer)};
    std::string key = group + way;
    for (const int member : meet) key += " " + std::to_string(member);
    key += " #" + std::to_string(own.counts[key]++);
    own.collectives.push_back(
        {group, kind, ranks, key, static_cast<int>(meet.size()), given, got, cost});
    const int place = static_cast<int>(own.collectives.size()) - 1;
    own.ops.push_back({Kind::kStart, phase_, 0, place, behind, -1});
    return place;
  }
  void wait(int rank, int collective) { add(rank, {Kind::kWait, phase_, 0, collective}); }
  void kernel(int rank, Nano length) {
    if (rank == job_.late_rank) length += length / 10;
    add(rank, {Kind::kKernel, phase_, length});
  }
  void add(int rank, Op op) { ranks_[index(rank)].ops.push_back(op); }

  void reduce_inside(int rank) {
    if (job_.tensor == 1) return;
    const std::int64_t size = kActivation;
    wait(rank, start(rank, "tp", "allreduce", size, size, 20 * kMicro));
  }
  void share_context(int rank, bool backward) {
    if (job_.context == 1) return;
    const std::int64_t own = kActivation / 2, all = own * job_.context;
    wait(rank, backward ? start(rank, "cp", "_reduce_scatter_base", all, own, 15 * kMicro)
                        : start(rank, "cp", "_allgather_base", own, all, 15 * kMicro));
  }
  void swap_tokens(int rank) {
    if (job_.expert == 1) return;
    wait(rank, start(rank, "ep", "all_to_allv", kActivation, kActivation, 25 * kMicro));
  }

  void forward(int rank, int chunk) {
    phase_ = Phase::kForward;
    const int part = chunk * job_.pipeline + stage_of(rank);
    if (part > 0) receive(rank, part - 1, part, " f");
    for (int layer = 0; layer < job_.layers; ++layer) {
      if (job_.shard > 0) wait(rank, gather(rank));
      share_context(rank, false);
      kernel(rank, (300 + 10 * layer) * kMicro);
      swap_tokens(rank);
      reduce_inside(rank);
    }
    if (job_.losses) start(rank, "dp", "allreduce", 1, 1, 10 * kMicro);
    if (part + 1 < job_.pipeline * job_.chunks) send(rank, part, part + 1, " f");
  }

  int gather(int rank) {
    return start(rank, "shard", "_allgather_base", kLayer / job_.shard, kLayer, 90 * kMicro);
  }

  void receive(int rank, int from, int to, const std::string& way) {
    wait(rank, message(rank, from, to, way, from));
  }
  void send(int rank, int from, int to, const std::string& way) {
    message(rank, from, to, way, to);
  }
  // Between the stages that hold two parts of the model.
  int message(int rank, int from, int to, const std::string& way, int other) {
    const int peer = rank + (other % job_.pipeline - stage_of(rank)) * stage_apart();
    return start(rank, "pp", other == from ? "recv" : "send", kActivation, kActivation, 30 * kMicro,
                 -1, peer, way + std::to_string(from) + ">" + std::to_string(to));
  }

  void backward(int rank, int chunk, bool exchanges) {
    phase_ = Phase::kForward;  // what the main thread asks for
    const int part = chunk * job_.pipeline + stage_of(rank);
    const int parts = job_.pipeline * job_.chunks;
    if (part + 1 < parts) receive(rank, part + 1, part, " b");
    phase_ = Phase::kBackward;
    for (int layer = job_.layers; layer-- > 0;) {
      if (job_.shard > 0) wait(rank, gather(rank));
      kernel(rank, (600 + 10 * layer) * kMicro);
      reduce_inside(rank);
      share_context(rank, true);
      const int each = gradients_a_layer();
      const int gradient =
          each * ((job_.chunks - 1 - chunk) * job_.layers + job_.layers - 1 - layer);
      for (int which = 0; which < each; ++which) {
        if (which > 0) kernel(rank, (60 - 10 * which) * kMicro);
        if (which == 1) swap_tokens(rank);
        add(rank, {Kind::kArrive, phase_, 0, -1, -1, gradient + which});
      }
      if (job_.next_sends && layer == job_.layers - 2) {
        sums_.push_back(reduce(rank, "dp", kLayer + kHigh));
      }
      if (job_.shard > 0) {
        scatter(rank);
      } else if (exchanges && layer % 2 == 0 && !job_.behind && !job_.next_sends) {
        reduce(rank);
      }
    }
    phase_ = Phase::kForward;
    if (part > 0) send(rank, part, part - 1, " b");
  }

  void scatter(int rank) {
    const int inner =
        start(rank, "shard", "_reduce_scatter_base", kLayer, kLayer / job_.shard, 120 * kMicro);
    int last = inner;
    if (job_.shard < job_.data) {
      const std::int64_t own = kLayer / job_.shard;
      last = start(rank, "replica", "allreduce", own, own, 70 * kMicro, inner);
    }
    sums_.push_back(last);
  }

  int gradients_a_layer() const { return job_.expert > 1 ? 3 : 2; }

  // Two layers in a bucket, padded to 128 elements a rank; the experts' apart.
  void reduce(int rank) {
    const int last = reduce(rank, job_.instances > 1 ? "shard" : "dp", 2 * kLayer);
    sums_.push_back(last);
    if (job_.instances > 1) {
      const std::int64_t own = ranks_[index(rank)].collectives[index(last)].got;
      sums_.push_back(start(rank, "replica", "allreduce", own, own, 50 * kMicro, last));
    }
    if (job_.expert > 1) sums_.push_back(reduce(rank, "edp", 2 * kExpert));
  }
  int reduce(int rank, const std::string& group, std::int64_t elements) {
    const auto ranks = static_cast<std::int64_t>(members(rank, group).size());
    const std::int64_t pad = 128 * ranks;
    const std::int64_t all = (elements + pad - 1) / pad * pad;
    if (job_.all_reduce) return start(rank, group, "allreduce", all, all, 260 * kMicro);
    return start(rank, group, "_reduce_scatter_base", all, all / ranks, 140 * kMicro);
  }

  void write_program(int rank) {
    Rank& own = ranks_[index(rank)];
    own.ops.clear();
    own.collectives.clear();
    own.counts.clear();
    own.at = 0;
    own.truth = {};
    own.truth.waits.assign(index(gradients_a_layer() * job_.layers * job_.chunks), 0);
    sums_.clear();
    for (const auto& [forwards, chunk, last] : order(rank)) {
      if (forwards) {
        forward(rank, chunk);
      } else {
        backward(rank, chunk, last);
      }
    }
    phase_ = Phase::kUpdate;
    for (int i = 0; job_.behind && i < job_.layers / 2; ++i) reduce(rank);
    if (job_.next_sends) {
      sums_.push_back(reduce(rank, "dp", (job_.layers - 1) * kLayer - kHigh));
    }
    for (const int sum : sums_) wait(rank, sum);
    for (int i = 0; i < job_.norms; ++i) {
      wait(rank, start(rank, job_.shard > 0 ? "shard" : "dp", "allreduce", 1, 1, 10 * kMicro));
    }
    add(rank, {Kind::kOptimizer, phase_});
    kernel(rank, 200 * kMicro);
    if (job_.shared_update) {
      const std::int64_t all = job_.layers * kLayer;
      wait(rank, start(rank, "dp", "_allgather_base", all / job_.data, all, 150 * kMicro));
    }
    if (job_.shard > 0 || job_.all_reduce || job_.data == 1) return;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const Own sum = own.collectives[index(sums_[i])];
      if (sum.kind == "allreduce") continue;
      wait(rank, start(rank, sum.group, "_allgather_base", sum.got, sum.given, 130 * kMicro));
    }
  }

  // Forward and backward passes of a stage: one forward, one backward; over chunks in Megatron's
  // order. The third says that it is the chunk's last backward pass.
  std::vector<std::tuple<bool, int, bool>> order(int rank) const {
    const int total = job_.micro_batches * job_.chunks;
    const int behind = job_.pipeline - 1 - stage_of(rank);
    const int warm =
        job_.gpipe
            ? total
            : std::min(total,
                       job_.chunks > 1 ? 2 * behind + (job_.chunks - 1) * job_.pipeline : behind);
    const auto chunk = [&](int pass, bool forwards) {
      const int of = pass % (job_.pipeline * job_.chunks) / job_.pipeline;
      return forwards ? of : job_.chunks - 1 - of;
    };
    std::vector<std::tuple<bool, int, bool>> passes;
    std::vector<int> left(index(job_.chunks), job_.micro_batches);
    int next = 0;
    const auto go_back = [&](int pass) {
      const int own = chunk(pass, false);
      passes.emplace_back(false, own, --left[index(own)] == 0);
    };
    for (; next < warm; ++next) passes.emplace_back(true, chunk(next, true), false);
    int back = 0;
    for (; next < total; ++next) {
      passes.emplace_back(true, chunk(next, true), false);
      go_back(back++);
    }
    while (back < total) go_back(back++);
    return passes;
  }

  // Ranks go on as far as they can, in turn, until all are through.
  void walk() {
    std::map<std::string, Rendezvous> meetings;
    Nano begin = 0;
    std::size_t most = 0;
    for (const Rank& rank : ranks_) begin = std::max(begin, rank.now);
    for (const Rank& rank : ranks_) most = std::max(most, rank.ops.size());
    host_ = begin + 50 * kMicro;
    for (Rank& rank : ranks_) {
      rank.now = host_ + static_cast<Nano>(most + 20) * 20 * kMicro;
      rank.streams.clear();
      rank.kernels.assign(rank.ops.size(), {0, 0});
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (Rank& rank : ranks_) {
        while (rank.at < rank.ops.size() && go(rank, meetings)) moved = true;
      }
    }
    for (Rank& rank : ranks_) {
      if (rank.at < rank.ops.size()) throw std::logic_error("the walk does not end");
      for (Own& one : rank.collectives) ended(one, meetings);
    }
  }

  static bool go(Rank& rank, std::map<std::string, Rendezvous>& meetings) {
    const Op& op = rank.ops[rank.at];
    if (op.kind == Kind::kStart) {
      Own& one = rank.collectives[index(op.collective)];
      if (one.start < 0 && !begin(rank, op, one, meetings)) return false;
    } else if (op.kind == Kind::kWait) {
      Own& one = rank.collectives[index(op.collective)];
      if (!ended(one, meetings)) return false;
      const Nano gap = std::max<Nano>(0, one.end - rank.now);
      count(rank, one, gap, op);
      rank.now += gap;
    } else if (op.kind == Kind::kKernel) {
      if (rank.truth.begin < 0) rank.truth.begin = rank.now;
      rank.kernels[rank.at] = {rank.now, rank.now + op.length};
      rank.now += op.length;
      (op.phase == Phase::kForward    ? rank.truth.forward
       : op.phase == Phase::kBackward ? rank.truth.backward
                                      : rank.truth.update) += op.length;
      if (op.phase == Phase::kBackward) rank.truth.waits[next_gradient(rank)] += op.length;
    }
    rank.truth.end = std::max(rank.truth.end, rank.now);
    ++rank.at;
    return true;
  }

  // Of the next kernel, as the stream waits ahead of that.
  static std::size_t next_gradient(const Rank& rank) {
    std::size_t at = rank.at;
    while (rank.ops[at].kind != Kind::kKernel) ++at;
    while (rank.ops[at].gradient < 0) ++at;
    return index(rank.ops[at].gradient);
  }

  static bool ended(Own& one, std::map<std::string, Rendezvous>& meetings) {
    const Rendezvous& meeting = meetings[one.key];
    if (one.end < 0 && meeting.came == one.members) one.end = meeting.last + one.cost;
    return one.end >= 0;
  }

  static bool begin(Rank& rank, const Op& op, Own& one,
                    std::map<std::string, Rendezvous>& meetings) {
    const auto [stream, first] = rank.streams.try_emplace(one.key.substr(0, one.key.find('#')), -1);
    Nano from = rank.now;
    for (const int place : {op.behind, stream->second}) {
      if (place < 0) continue;
      Own& before = rank.collectives[index(place)];
      if (!ended(before, meetings)) return false;
      from = std::max(from, before.end);
    }
    stream->second = op.collective;
    one.start = from;
    if (rank.truth.begin < 0) rank.truth.begin = from;
    Rendezvous& meeting = meetings[one.key];
    ++meeting.came;
    meeting.last = std::max(meeting.last, from);
    return true;
  }

  static bool is_inside(const Own& one) {
    return one.group == "tp" || one.group == "cp" || one.group == "ep";
  }

  static void count(Rank& rank, const Own& one, Nano gap, const Op& op) {
    rank.truth.use[one.group].second += gap;
    if (one.group == "pp") {
      rank.truth.stages += gap;
    } else if (is_inside(one)) {
      (op.phase == Phase::kForward ? rank.truth.forward : rank.truth.backward) += gap;
      if (op.phase == Phase::kBackward) rank.truth.waits[next_gradient(rank)] += gap;
    } else {
      rank.truth.exposed += gap;
    }
  }

  // Printing.

  static void event(Rank& rank, const std::string& category, const std::string& name, int process,
                    int thread, Nano start, Nano end, const std::string& args) {
    rank.events.push_back(trace_event(category, name, process, std::to_string(thread),
                                      kEpoch + start, kEpoch + end, args));
  }

  static void work(Rank& rank, const std::string& name, int thread, Nano call, int stream,
                   Nano start, Nano end, const std::string& args) {
    const std::string id = "\"correlation\": " + std::to_string(++rank.correlation);
    event(rank, "cuda_runtime", "cudaLaunchKernel", 77, thread, call, call + 3 * kMicro, id);
    event(rank, "kernel", name, 0, stream, start, end,
          id + ", \"device\": 0, \"stream\": " + std::to_string(stream) + args);
  }

  std::string description(const std::string& group) const {
    const std::map<std::string, std::string> megatron{
        {"tp", "TENSOR_MODEL_PARALLEL_GROUP"},
        {"pp", "PIPELINE_MODEL_PARALLEL_GROUP"},
        {"cp", "CONTEXT_PARALLEL_GROUP"},
        {"ep", "EXPERT_MODEL_PARALLEL_GROUP"},
        {"edp", "EXPERT_DATA_PARALLEL_GROUP"},
        {"shard", "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP"},
        {"replica", "INTER_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP"},
        {"dp", "DATA_PARALLEL_GROUP_WITH_CP"}};
    const std::map<std::string, std::string> titan{{"tp", "mesh_tp"},
                                                   {"pp", "mesh_pp"},
                                                   {"shard", "mesh_dp_shard"},
                                                   {"replica", "mesh_dp_replicate"}};
    if (!job_.described) return "undefined";
    return (job_.shard > 0 ? titan : megatron).at(group);
  }

  std::string arguments(const Own& one) const {
    std::string ranks;
    const bool wide = job_.wide_sums && !is_inside(one) && one.group != "pp" &&
                      !one.kind.starts_with("_allgather");
    for (const int rank : one.ranks) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    std::string text = ", \"Collective name\": \"" + one.kind +
                       "\", \"In msg nelems\": " + std::to_string(one.given) +
                       ", \"Out msg nelems\": " + std::to_string(one.got) + ", \"dtype\": \"" +
                       (wide ? "Float" : "BFloat16") + "\"";
    if (!job_.named) return text;
    text += ", \"Group size\": " + std::to_string(one.ranks.size());
    text += ", \"Process Group Name\": \"" + one.group + std::to_string(one.ranks.front()) + "\"";
    text += ", \"Process Group Description\": \"" + description(one.group) + "\"";
    return text + ", \"Process Group Ranks\": \"[" + ranks + "]\"";
  }

  void print_step(int number, int step) {
    Rank& rank = ranks_[index(number)];
    constexpr int kMain = 1001, kEngine = 1002;
    Nano host = host_;
    for (std::size_t i = 0; i < rank.ops.size(); ++i) {
      const Op& op = rank.ops[i];
      const int thread = op.phase == Phase::kBackward ? kEngine : kMain;
      if (op.kind == Kind::kKernel) {
        const auto [start, end] = rank.kernels[i];
        work(rank, "void gemm<float>(float*)", thread, host, 7, start, end, "");
      } else if (op.kind == Kind::kArrive) {
        const std::string node = "torch::autograd::AccumulateGrad";
        const int which = op.gradient % gradients_a_layer();
        const bool whole = job_.whole_shapes && which > 0;
        const std::int64_t sides[] = {0, kWide, kInner};
        std::string shape = std::to_string(kHigh * (whole ? job_.tensor : 1));
        if (which > 0) shape += ", " + std::to_string(sides[which]);
        event(rank, "cpu_op", "autograd::engine::evaluate_function: " + node, 77, thread, host,
              host + 19 * kMicro, "");
        event(rank, "cpu_op", node, 77, thread, host + kMicro, host + 8 * kMicro,
              "\"Input Dims\": [[" + shape + "]], \"Input type\": [\"c10::BFloat16\"]");
      } else if (op.kind == Kind::kStart) {
        const Own& one = rank.collectives[index(op.collective)];
        rank.truth.use[one.group].first += 1;
        const bool message = one.group == "pp";
        work(rank, message ? "ncclDevKernel_SendRecv(ncclDevKernelArgs)" : "ncclDevKernel_Sum(a)",
             thread, thread == kEngine ? host - 7 * kMicro : host,
             20 + static_cast<int>(one.group.size()), one.start, one.end, arguments(one));
      } else if (op.kind == Kind::kOptimizer) {
        event(rank, "user_annotation", "Optimizer.step#AdamW.step", 77, thread, host,
              host + 60 * kMicro, "");
      }
      host += 20 * kMicro;
    }
    event(rank, "user_annotation", "ProfilerStep#" + std::to_string(step), 77, kMain,
          host_ - 10 * kMicro, host + 10 * kMicro, "");
  }

  static constexpr Nano kEpoch = 1'700'000'000'000'000 * kMicro;
  CutJob job_;
  std::vector<Rank> ranks_;
  std::vector<int> sums_;
  Phase phase_ = Phase::kForward;
  Nano host_ = 0;
};

}  // namespace syncline::test
