// Traces of a job whose every time is known: random steps of DistributedDataParallel, written as
// one of torch's profilers writes them. The host runs ahead of the device, except where it is late
// by design.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/index.h"
#include "imports/observed.h"
#include "tests/support/dice.h"

namespace syncline::test {

// What all traces are written in. Times in nanoseconds, from a begin of the trace's own.
using Nano = std::int64_t;
inline constexpr Nano kMicro = 1000;

inline Seconds seconds_of(Nano time) { return 1e-9 * static_cast<double>(time); }

inline std::string micros(Nano time) {
  const std::string rest = std::to_string(1000 + time % kMicro).substr(1);
  return std::to_string(time / kMicro) + (time % kMicro == 0 ? "" : "." + rest);
}

inline std::string trace_event(const std::string& category, const std::string& name, int process,
                               const std::string& thread, Nano start, Nano end,
                               const std::string& args) {
  return "{\"ph\": \"X\", \"cat\": \"" + category + "\", \"name\": \"" + name +
         "\", \"pid\": " + std::to_string(process) + ", \"tid\": " + thread +
         ", \"ts\": " + micros(start) + ", \"dur\": " + micros(end - start) + ", \"args\": {" +
         args + "}}";
}

// Members of a file.
inline std::string trace_head(const std::string& device, int devices, int rank, int world) {
  std::string list;
  for (int i = 0; i < devices; ++i) {
    list += std::string(i > 0 ? ", " : "") + "{\"id\": " + std::to_string(i) + ", \"name\": \"" +
            device + "\"}";
  }
  return "\"schemaVersion\": 1, \"deviceProperties\": [" + list +
         "], \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " + std::to_string(rank) +
         ", \"world_size\": " + std::to_string(world) + "}";
}
inline std::string trace_events(const std::vector<std::string>& events) {
  std::string list = "\"traceEvents\": [";
  for (std::size_t i = 0; i < events.size(); ++i) list += (i > 0 ? ",\n" : "\n") + events[i];
  return list + "\n]";
}

struct TraceDialect {
  std::string name = "2024";
  bool old_words = false;       // 2021: Operator, Runtime, Kernel, Memcpy; threads as strings
  bool whole = false;           // whole microseconds
  bool metadata_last = false;   // members behind traceEvents
  bool amd = false;             // hip runtime, ncclDevKernel_Generic
  bool engine_calls = true;     // evaluate_function around AccumulateGrad
  bool shapes = false;          // Input Dims
  bool nccl_metadata = true;    // on kernels and record_param_comms
  bool annotations = true;      // nccl:all_reduce; else c10d::allreduce_ alone
  bool views = false;           // gradient_as_bucket_view
  bool hook = false;            // reducer::copy_
  bool profiler_steps = true;   // ProfilerStep#N
  bool optimizer_marks = true;  // Optimizer.step#...
  bool closure = false;         // the optimizer runs the passes
  bool cut_inside = false;      // ProfilerStep begins between forward and backward pass
  std::string optimizer = "SGD";
  bool disorder = false;     // events in any order
  bool new_ids = false;      // correlations count from 1 in every step
  bool two_engines = false;  // gradients on two threads by turns
  bool one_thread = false;   // for forward and backward
  bool lost_calls = false;   // of the collectives' launches; kernels without metadata
  bool mixed = false;        // buckets of fp32 and of bf16
  bool late_sends = false;   // the host sends buckets late: nothing runs until then
  bool broadcasts = false;   // of buffers, ahead of the forward pass
  int passes = 1;            // backward passes, the last of which exchanges
  bool step_a_pass = false;  // with a ProfilerStep each
};

class TraceWriter {
 public:
  TraceWriter(const TraceDialect& dialect, std::uint64_t seed)
      : dialect_(dialect), seed_(seed), dice_(seed) {}

  // A whole file: `steps` steps of the model that the seed gives; each rank has its own times.
  std::string file(int steps, int rank = 0, int world = 2) {
    draw_model();
    dice_ = Dice(1000 * seed_ + static_cast<std::uint64_t>(rank));
    for (int i = 0; i < steps; ++i) draw_step(i);
    reach_to_next();
    if (dialect_.disorder) {
      for (std::size_t i = events_.size(); i > 1; --i) {
        std::swap(events_[i - 1], events_[index(dice_.between(0, static_cast<int>(i) - 1))]);
      }
    }
    const std::string head = trace_head("NVIDIA H100", 1, rank, world);
    const std::string list = trace_events(events_);
    return dialect_.metadata_last ? "{" + list + ", " + head + "}" : "{" + head + ", " + list + "}";
  }

  const std::vector<job::Step>& truth() const { return truth_; }

 private:
  using Time = Nano;
  static constexpr int kMain = 1001;
  static constexpr int kEngine = 1002;
  static constexpr int kOtherEngine = 1003;

  Time draw(int low, int high) {  // microseconds
    return dialect_.whole ? kMicro * dice_.between(low, high)
                          : dice_.between(1000 * low, 1000 * high);
  }

  void event(const std::string& category, const std::string& name, int process,
             const std::string& thread, Time start, Time end, const std::string& args) {
    events_.push_back(
        trace_event(category, name, process, thread, kEpoch + start, kEpoch + end, args));
  }

  // The word, in the profiler's own; in those of 2021.
  std::string word(const std::string& now, const std::string& then) const {
    return dialect_.old_words ? then : now;
  }
  std::string thread_text(int thread) const {
    const std::string text = std::to_string(thread);
    return word(text, "\"" + text + "\"");
  }

  void host(const std::string& name, int thread, Time start, Time end, const std::string& args = "",
            bool annotation = false) {
    event(word(annotation ? "user_annotation" : "cpu_op", "Operator"), name, 77,
          thread_text(thread), start, end, args);
  }

  // A call of the host's, and what it makes the device do.
  void work(const std::string& category, const std::string& name, int thread, Time call,
            Time returned, int stream, Time start, Time end, const std::string& args = "") {
    const std::string id = "\"correlation\": " + std::to_string(++correlation_);
    const bool copies = category == "gpu_memcpy";
    const std::string runtime =
        std::string(dialect_.amd ? "hip" : "cuda") + (copies ? "MemcpyAsync" : "LaunchKernel");
    // AMD's copies tell their size where they are called.
    const std::size_t colon = args.find(": ");
    const std::string size = copies ? ", \"size\": \"" + args.substr(colon + 2) + "\"" : "";
    if (!dialect_.lost_calls || !name.starts_with("nccl")) {
      event(word("cuda_runtime", "Runtime"), runtime, 77, thread_text(thread), call, returned,
            id + (dialect_.amd ? size : ""));
    }
    const std::string number = std::to_string(stream);
    busy_.emplace_back(start, end);
    event(word(category, copies ? "Memcpy" : "Kernel"), name, 0,
          word(number, "\"stream " + number + "\""), start, end,
          id + ", \"device\": 0" + word(", \"stream\": " + number, "") +
              (dialect_.amd && copies ? "" : args));
    // Flows and other noise stand between.
    events_.push_back("{\"ph\": \"s\", \"id\": " + std::to_string(correlation_) +
                      ", \"pid\": 77, \"tid\": 1, \"ts\": " + micros(kEpoch + call) +
                      ", \"cat\": \"ac2g\", \"name\": \"ac2g\"}");
  }

  void draw_model() {
    const int gradients = dice_.between(1, 40);
    for (int i = 0; i < gradients; ++i) {
      std::vector<std::int64_t> shape;
      for (int d = dice_.between(dialect_.shapes ? 0 : 1, 3); d > 0; --d) {
        shape.push_back(dice_.between(1, 90));
      }
      shapes_.push_back(shape);
    }
    for (int begin = 0; begin < gradients;) {
      const int end = std::min(gradients, begin + dice_.between(1, 12));
      buckets_.push_back({begin, end});
      const bool brain = dialect_.mixed && dice_.chance(50);
      formats_.resize(index(end), brain ? DType::kBf16 : DType::kFp32);
      begin = end;
    }
  }

  std::int64_t elements(std::size_t gradient) const {
    return std::accumulate(shapes_[gradient].begin(), shapes_[gradient].end(), std::int64_t{1},
                           std::multiplies<>());
  }

  // Kernels of the device from `device` on; the calls stand at `call`, ten microseconds each.
  void kernel(int thread, Time& call, Time& device, Time length) {
    work("kernel", "void gemm<float>(float*)", thread, call, call + 3 * kMicro, 7, device,
         device + length);
    call += 10 * kMicro;
    device += length;
  }

  static std::string message(std::int64_t count, DType format,
                             const std::string& kind = "allreduce") {
    return ", \"Collective name\": \"" + kind + "\", \"In msg nelems\": " + std::to_string(count) +
           ", \"Out msg nelems\": " + std::to_string(count) +
           ", \"Group size\": 2, \"Process Group Name\": \"0\", \"dtype\": \"" +
           (format == DType::kBf16 ? "BFloat16\"" : "Float\"");
  }

  int backward_thread() const { return dialect_.one_thread ? kMain : kEngine; }

  std::string kernel_name(DType format) const {
    const bool brain = format == DType::kBf16;
    if (dialect_.amd) return "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)";
    if (dialect_.old_words) {
      return std::string("ncclKernel_AllReduce_RING_LL_Sum_") +
             (brain ? "__nv_bfloat16" : "float") + "(ncclDevComm*, unsigned long, ncclWork*)";
    }
    return std::string("ncclDevKernel_AllReduce_Sum_") + (brain ? "bf16" : "f32") +
           "_RING_LL(ncclDevComm*)";
  }

  // From when to when it runs: once it is ready and the network is free. `late`, `longest`: at most
  // so many microseconds until it begins, and long.
  std::pair<Time, Time> transfer(Time ready, int late, int longest,
                                 job::ObservedExchange& exchange) {
    const Time start = std::max(ready, network_) + draw(1, late);
    const Time end = start + draw(5, longest);
    network_ = end;
    starts_.push_back(start);
    ends_.push_back(end);
    exchange.complete = seconds_of(ready - forward_);
    exchange.sent = seconds_of(start - forward_);
    exchange.duration = exchange.time = seconds_of(end - start);
    return {start, end};
  }

  void send(const std::pair<int, int>& bucket, Time call, job::Step& step) {
    job::ObservedExchange& exchange = step.exchanges.emplace_back();
    exchange.kind = "all_reduce";
    exchange.dtype = formats_[index(bucket.first)];
    for (int i = bucket.first; i < bucket.second; ++i) {
      exchange.gradients.push_back(i);
      exchange.elements += elements(index(i));
    }
    const auto [start, end] =
        transfer(complete_.back(), dialect_.late_sends ? 3000 : 20, 900, exchange);
    const std::string shape = dialect_.shapes
                                  ? "\"Input Dims\": [[" + std::to_string(exchange.elements) +
                                        "]], \"Input type\": [\"float\"]"
                                  : "";
    const std::string told =
        dialect_.nccl_metadata ? message(exchange.elements, exchange.dtype).substr(2) : "";
    host("c10d::allreduce_", engine_, call, call + 6 * kMicro);
    host("record_param_comms", engine_, call + kMicro, call + 5 * kMicro, told);
    if (dialect_.annotations) {
      host("nccl:all_reduce", engine_, call + 2 * kMicro, call + 4 * kMicro, shape, true);
    }
    work("kernel", kernel_name(exchange.dtype), engine_, call + 3 * kMicro, call + 3 * kMicro + 500,
         20, start, end,
         dialect_.nccl_metadata && !dialect_.lost_calls ? message(exchange.elements, exchange.dtype)
                                                        : "");
  }

  void arrive(std::size_t place, Time& call, Time& device, job::Step& step, bool exchanges) {
    job::Gradient gradient;
    gradient.elements = elements(place);
    gradient.dtype = formats_[place];
    engine_ = dialect_.two_engines && place % 2 == 1 ? kOtherEngine : backward_thread();
    if (dialect_.shapes) gradient.shape = shapes_[place];
    if (place == 0 || dice_.chance(70)) {
      const Time idle = place > 0 && dice_.chance(30) ? draw(1, 30) : 0;
      const Time begin = device;
      device += idle;
      if (dialect_.engine_calls) {
        host("autograd::engine::evaluate_function: MulBackward0", engine_, call - kMicro,
             call + 5 * kMicro);
      }
      kernel(engine_, call, device, draw(1, 400));
      gradient.wait = seconds_of(device - begin);
    }
    std::string shape = dialect_.shapes ? "\"Input Dims\": [[" : "";
    if (dialect_.shapes) {
      for (std::size_t i = 0; i < shapes_[place].size(); ++i) {
        shape += (i > 0 ? ", " : "") + std::to_string(shapes_[place][i]);
      }
      shape += std::string("]], \"Input type\": [\"") +
               (gradient.dtype == DType::kBf16 ? "c10::BFloat16\"]" : "float\"]");
    }
    const Time outer = call;
    const std::string node = "torch::autograd::AccumulateGrad";
    host(node, engine_, outer + kMicro, outer + 2 * kMicro, shape);
    if (exchanges && !dialect_.views) {
      const Time idle = draw(1, 9);
      const Time length = draw(1, 12);
      host(std::string("torch::distributed::reducer::") + (dialect_.hook ? "copy_" : "mul_out"),
           engine_, outer + 3 * kMicro, outer + 8 * kMicro);
      work("kernel", "void mul<float>()", engine_, outer + 4 * kMicro, outer + 5 * kMicro, 7,
           device + idle, device + idle + length);
      device += idle + length;
      gradient.copy_in = seconds_of(idle + length);
      step.copy_in += gradient.copy_in;
      step.copy_kernels += seconds_of(length);
    }
    complete_.push_back(device);
    if (exchanges) step.gradients.push_back(gradient);
    for (const auto& bucket : buckets_) {
      if (exchanges && bucket.second == static_cast<int>(place) + 1) {
        send(bucket, outer + 10 * kMicro, step);
      }
    }
    if (dialect_.engine_calls) {
      host("autograd::engine::evaluate_function: " + node, engine_, outer, outer + 19 * kMicro);
    }
    call += 25 * kMicro;
  }

  // The device waits for the collectives up to that one, each while it runs; between them for the
  // host. When it has them.
  Time wait_for(Time from, std::size_t last, std::size_t first_exchange, job::Step& step,
                Seconds& exposed, Seconds& idle) {
    for (std::size_t i = 0; i <= last; ++i) {
      const Time begin = std::max(from, starts_[i]);
      if (begin >= ends_[i]) continue;
      const double part = seconds_of(ends_[i] - begin);
      idle += seconds_of(begin - from);
      exposed += part;
      step.exchanges[first_exchange + i].exposed += part;
      from = ends_[i];
    }
    return from;
  }

  // The device waits until the host has called and, with `collective`, until that has ended.
  Time begin_behind(Time before, Time returned, const Time* collective, job::Step& step) {
    const Time could = std::max(before, returned);
    if (collective == nullptr) return could;
    const auto place = static_cast<std::size_t>(collective - ends_.data());
    return wait_for(could, place, broadcasts_, step, step.exposed, step.host_gap);
  }

  // A model's statistics of one number format: joined, broadcast and, all formats together, copied
  // back. The kernels that join those of the next format do not wait for the broadcast.
  void join_and_broadcast(std::int64_t count, Time& call, Time& device, job::Step& step) {
    for (int k = dice_.between(1, 3); k > 0; --k) kernel(kMain, call, device, draw(1, 9));
    job::ObservedExchange& exchange = step.exchanges.emplace_back();
    exchange.kind = "broadcast";
    exchange.elements = count;
    const auto [start, end] = transfer(device, 20, 200, exchange);
    exchange.complete = exchange.sent;
    const std::string told = message(count, DType::kFp32, "broadcast");
    host("c10d::broadcast_", kMain, call, call + 6 * kMicro);
    host("record_param_comms", kMain, call + kMicro, call + 5 * kMicro, told.substr(2));
    host("nccl:broadcast", kMain, call + 2 * kMicro, call + 4 * kMicro, "", true);
    work("kernel", "ncclDevKernel_Broadcast_RING_LL(ncclDevComm*)", kMain, call + 3 * kMicro,
         call + 3 * kMicro + 500, 20, start, end, told);
    call += 10 * kMicro;
  }

  void broadcast_buffers(Time& call, Time& device, job::Step& step) {
    for (int formats = dice_.between(1, 2); formats > 0; --formats) {
      join_and_broadcast(dice_.between(1, 100'000), call, device, step);
    }
    Seconds exposed = 0;
    Seconds idle = 0;
    device = wait_for(device, ends_.size() - 1, 0, step, exposed, idle);
    for (int copies = dice_.between(1, 9); copies > 0; --copies) {
      const Time end = device + draw(1, 3);
      work("gpu_memcpy", "Memcpy DtoD (Device -> Device)", kMain, call, call + 3 * kMicro, 7,
           device, end, ", \"bytes\": 256");
      call += 10 * kMicro;
      device = end + (copies > 1 && dice_.chance(40) ? draw(1, 20) : 0);
    }
    step.broadcast = seconds_of(device - forward_);
    device += dice_.chance(50) ? draw(1, 20) : 0;
    // Buckets' exchanges are counted from here on.
    starts_.clear();
    ends_.clear();
  }

  // While nothing runs on the device.
  Seconds idle(Time from, Time to) {
    std::sort(busy_.begin(), busy_.end());
    Time idle = 0;
    for (const auto& [start, end] : busy_) {
      if (start >= to) break;
      idle += std::max<Time>(start - from, 0);
      from = std::max(from, end);
    }
    return seconds_of(idle + std::max<Time>(to - from, 0));
  }

  // When the host returns from its next call: late for the device, or ahead of it.
  Time next_call(Time device, int latest) {
    const Time wanted = device + (dice_.chance(50) ? draw(1, latest) : -draw(1, 5));
    host_ = std::max(wanted, host_ + 7 * kMicro);
    return host_;
  }

  void copy_out(Time& device, job::Step& step) {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      for (int i = buckets_[b].first; i < buckets_[b].second; ++i) {
        const auto place = index(i);
        const bool first = i == buckets_[b].first;
        const Time returned = next_call(device, 60);
        const double waited = step.exposed + step.host_gap;
        const Time start = begin_behind(device, returned, first ? &ends_[b] : nullptr, step);
        const Time end = start + draw(1, 20);
        host("torch.distributed.ddp.reducer::copy_bucket_to_grad", backward_thread(),
             returned - 4 * kMicro, returned + 2 * kMicro);
        work("gpu_memcpy", "Memcpy DtoD (Device -> Device)", backward_thread(), returned - kMicro,
             returned, 7, start, end,
             ", \"bytes\": " + std::to_string(step.gradients[place].bytes()));
        step.gradients[place].copy_out =
            seconds_of(end - device) - (step.exposed + step.host_gap - waited);
        step.copy_out += step.gradients[place].copy_out;
        step.copy_kernels += seconds_of(end - start);
        device = end;
      }
    }
  }

  void update(Time& device, job::Step& step) {
    const Time returned = next_call(device, 700);
    const double waited = step.exposed + step.host_gap;
    const Time* last = dialect_.views && !ends_.empty() ? &ends_.back() : nullptr;
    Time start = begin_behind(device, returned, last, step);
    const Time rest = dice_.chance(50) ? draw(1, 40) : 0;  // the device itself takes its time
    start += rest;
    step.host_gap += seconds_of(start - device) - (step.exposed + step.host_gap - waited);
    const Time call = returned - kMicro;
    Time behind = start;
    work("kernel", "void sgd()", kMain, call, returned, 7, start, start + 3 * kMicro);
    behind += 3 * kMicro + draw(0, 20);
    const Time length = draw(1, 300);
    work("kernel", "void sgd()", kMain, returned + kMicro, returned + 2 * kMicro, 7, behind,
         behind + length);
    behind += length;
    if (dialect_.optimizer_marks && !dialect_.closure) {
      host("Optimizer.step#" + dialect_.optimizer + ".step", kMain, call - 3 * kMicro,
           returned + 9 * kMicro, "", true);
    }
    step.update = seconds_of(behind - start);
    device = behind;
    host_ = returned + 20 * kMicro;
  }

  // A step reaches to the next one's begin; the last, as far as the others usually do.
  void reach_to_next() {
    std::vector<Time> between;
    for (std::size_t i = 0; i + 1 < truth_.size(); ++i) {
      between.push_back(forwards_[i + 1] - updates_[i]);
    }
    std::vector<Time> usual = between;
    std::sort(usual.begin(), usual.end());
    if (!usual.empty()) between.push_back(usual[(usual.size() - 1) / 2]);
    for (std::size_t i = 0; i < between.size(); ++i) {
      truth_[i].between = truth_[i].between_idle = seconds_of(between[i]);
      truth_[i].gpu += truth_[i].between;
    }
  }

  void draw_step(int number) {
    job::Step step;
    step.number = number;
    complete_.clear();
    starts_.clear();
    ends_.clear();
    busy_.clear();
    if (dialect_.new_ids) correlation_ = 0;
    const Time begin = std::max(host_, device_ + 5 * kMicro) + draw(1, 50);
    Time call = begin + 20 * kMicro;
    // Far enough behind that the host is never late but by design.
    Time device = begin + 40 * kMicro * static_cast<Time>(3 * 45 * dialect_.passes);
    network_ = device;
    forward_ = device;
    forwards_.push_back(device);
    host("DistributedDataParallel.forward", kMain, call, call + 5 * kMicro, "", true);
    if (dialect_.broadcasts) broadcast_buffers(call, device, step);
    broadcasts_ = step.exchanges.size();
    Time backward = device;
    Time pass_begin = begin, forwarded = begin;
    for (int pass = 0; pass < dialect_.passes; ++pass) {
      for (int k = dice_.between(1, 6); k > 0; --k) {
        kernel(kMain, call, device, draw(1, 900));
        device += dice_.chance(40) ? draw(1, 20) : 0;
      }
      backward = device;
      forwarded = call;
      complete_.clear();
      const bool last = pass + 1 == dialect_.passes;
      for (std::size_t i = 0; i < shapes_.size(); ++i) arrive(i, call, device, step, last);
      if (dialect_.step_a_pass && !last) {
        const int micro = number * dialect_.passes + pass;
        host("ProfilerStep#" + std::to_string(micro), kMain, pass_begin, call, "", true);
        pass_begin = call;
      }
    }
    step.forward = seconds_of(backward - forward_) - step.broadcast;
    step.backward = seconds_of(device - backward);
    host_ = call;
    if (!dialect_.views) copy_out(device, step);
    update(device, step);
    step.gpu = seconds_of(device - forward_);
    step.idle = idle(forward_, device);
    device_ = device;
    updates_.push_back(device);
    if (dialect_.step_a_pass) step.number = (number + 1) * dialect_.passes - 1;
    if (dialect_.closure) {
      host("Optimizer.step#" + dialect_.optimizer + ".step", kMain, begin, host_, "", true);
    }
    if (dialect_.cut_inside) {
      if (!truth_.empty()) {
        host("ProfilerStep#" + std::to_string(number), kMain, forwarded_, forwarded, "", true);
      }
      forwarded_ = forwarded;
    } else if (dialect_.profiler_steps) {
      host("ProfilerStep#" + std::to_string(step.number), kMain, pass_begin, host_, "", true);
      step.cpu = seconds_of(host_ - begin);
    }
    truth_.push_back(step);
  }

  static constexpr Time kEpoch = 1'700'000'000'000'000 * kMicro;

  TraceDialect dialect_;
  std::uint64_t seed_;
  Dice dice_;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<std::pair<int, int>> buckets_;
  std::vector<DType> formats_;
  std::vector<std::string> events_;
  std::vector<job::Step> truth_;
  std::vector<Time> complete_;  // of each gradient, on the device
  std::vector<Time> starts_;    // of each exchange
  std::vector<Time> ends_;
  std::vector<std::pair<Time, Time>> busy_;  // of the device, this step
  std::vector<Time> forwards_;               // where each step's first kernel begins
  std::vector<Time> updates_;                // and its last one ends
  Time forward_ = 0;
  Time forwarded_ = 0;  // the host's end of the last forward pass
  Time network_ = 0;
  Time device_ = 0;  // where both stand behind the step
  Time host_ = 0;
  int correlation_ = 0;
  std::size_t broadcasts_ = 0;  // exchanges of a step ahead of those of its gradients
  int engine_ = kEngine;
};

inline std::vector<TraceDialect> trace_dialects() {
  return {
      {.name = "2024"},
      {.name = "2021",
       .old_words = true,
       .whole = true,
       .engine_calls = false,
       .nccl_metadata = false},
      {.name = "2022", .whole = true, .shapes = true, .nccl_metadata = false},
      {.name = "metadata_last", .metadata_last = true},
      {.name = "amd", .amd = true},
      {.name = "amd_by_calls", .amd = true, .shapes = true, .nccl_metadata = false},
      {.name = "c10d_alone", .nccl_metadata = false, .annotations = false},
      {.name = "views", .shapes = true, .views = true},
      {.name = "views_old", .whole = true, .shapes = true, .nccl_metadata = false, .views = true},
      {.name = "hook", .shapes = true, .hook = true},
      {.name = "unmarked", .profiler_steps = false},
      {.name = "closure", .shapes = true, .closure = true},
      {.name = "closure_unmarked", .profiler_steps = false, .closure = true},
      {.name = "closure_cut", .shapes = true, .closure = true, .cut_inside = true},
      {.name = "closure_cut_passes", .closure = true, .cut_inside = true, .passes = 2},
      {.name = "bare", .shapes = true, .profiler_steps = false, .optimizer_marks = false},
      {.name = "disorder", .disorder = true},
      {.name = "accumulation", .passes = 3},
      {.name = "ids_anew", .new_ids = true},
      {.name = "accumulation_by_steps", .passes = 3, .step_a_pass = true},
      {.name = "two_engines", .two_engines = true},
      {.name = "mixed", .mixed = true},
      {.name = "mixed_by_name", .nccl_metadata = false, .mixed = true},
      {.name = "mixed_by_old_name", .old_words = true, .nccl_metadata = false, .mixed = true},
      {.name = "calls_lost", .shapes = true, .lost_calls = true},
      {.name = "one_thread", .one_thread = true},
      {.name = "one_thread_passes", .shapes = true, .one_thread = true, .passes = 2},
      {.name = "mixed_hook", .shapes = true, .hook = true, .mixed = true},
      {.name = "late_sends", .shapes = true, .late_sends = true},
      {.name = "late_sends_views", .shapes = true, .views = true, .late_sends = true},
      {.name = "buffers", .shapes = true, .broadcasts = true},
      {.name = "buffers_views", .shapes = true, .views = true, .broadcasts = true},
      {.name = "buffers_unmarked", .profiler_steps = false, .broadcasts = true},
      {.name = "buffers_one_thread", .one_thread = true, .broadcasts = true},
      {.name = "buffers_accumulation", .broadcasts = true, .passes = 2},
      {.name = "accumulation_views", .shapes = true, .views = true, .passes = 2}};
}

}  // namespace syncline::test
