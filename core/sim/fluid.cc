#include "core/sim/fluid.h"

#include <simgrid/forward.h>  // for the next
#include <simgrid/version.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <set>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/index.h"

namespace syncline::sim {
namespace {

namespace sg = simgrid::s4u;

// A timer is a computation of one operation per second, each on its own core.
constexpr int kTimerCores = 1 << 20;
constexpr Seconds kNever = std::numeric_limits<double>::infinity();

// SimGrid counts whole units; a share of a small payload may be a fraction of a byte.
constexpr double kUnits = 1024;

// Names that differ between SimGrid's versions, from Debian 12's 3.32 on.
// when_completed: sets a function to call with each completed activity.
#if SIMGRID_VERSION < 33400
constexpr char kTiming[] = "--cfg=surf/precision:1e-12";
constexpr char kWork[] = "--cfg=maxmin/precision:1e-9";

void start(sg::Activity& activity) { activity.vetoable_start(); }

template <typename Callback>
void when_completed(Callback callback) {
  sg::Activity::on_completion_cb(callback);
}
#else
constexpr char kTiming[] = "--cfg=precision/timing:1e-12";
constexpr char kWork[] = "--cfg=precision/work-amount:1e-9";

void start(sg::Activity& activity) { activity.start(); }

template <typename Callback>
void when_completed(Callback callback) {
  sg::Exec::on_completion_cb(callback);
  sg::Comm::on_completion_cb(callback);
}
#endif

#if SIMGRID_VERSION < 40000
sg::NetZone* star_zone(sg::Engine&) { return sg::create_star_zone("network"); }

sg::Host* add_host(sg::NetZone& zone, const std::string& name) {
  return zone.create_host(name, 1.0);
}

sg::Link* add_link(sg::NetZone& zone, const std::string& name, double capacity) {
  return zone.create_link(name, capacity);
}
#else
sg::NetZone* star_zone(sg::Engine& engine) {
  return engine.get_netzone_root()->add_netzone_star("network");
}

sg::Host* add_host(sg::NetZone& zone, const std::string& name) { return zone.add_host(name, 1.0); }

sg::Link* add_link(sg::NetZone& zone, const std::string& name, double capacity) {
  return zone.add_link(name, capacity);
}
#endif

}  // namespace

struct Fluid::Parts {
  // SimGrid reads its command line and writes its configuration to stderr by default.
  int argc = 5;
  char name[9] = "syncline";
  char log[27] = "--log=root.thresh:critical";
  std::string timing = kTiming;
  std::string work = kWork;
  // Lazy updates, the default, take no less time and are less exact.
  char optim[27] = "--cfg=network/optim:Full";
  char* argv[6] = {name, log, timing.data(), work.data(), optim, nullptr};
  std::unique_ptr<sg::Engine> engine;
  struct Way {
    sg::Host* source = nullptr;  // null: shares no link, so its flows need no SimGrid
    BytesPerSecond limit = kNever;
  };
  std::vector<Way> ways;  // by route
  sg::Host* sink = nullptr;
  std::int32_t job = 0;
  const Handler* handler = nullptr;
  Seconds ahead = 0;  // of SimGrid's clock, which stops while it has nothing to do

  // A flow, or the wait for a moment.
  struct Pending {
    sg::ActivityPtr activity;
    Token token;
    Seconds moment = kNever;
  };
  std::unordered_map<const sg::Activity*, Pending> pending;
  // All activities on one processor cost SimGrid time at each event, so it waits only for the first
  // of the timers, and only while it has something else to do: a plan without fusion starts one for
  // each of its gradients at once.
  struct Timer {
    Seconds end;
    std::uint64_t number;  // keeps timers of one moment in the order of their start
    Token token;
    bool operator<(const Timer& other) const {
      return std::pair(end, number) > std::pair(other.end, other.number);
    }
  };
  std::priority_queue<Timer> timers;
  std::uint64_t timers_started = 0;
  std::set<Seconds> awaited;  // moments that SimGrid waits for
  // An activity must outlive the callback at its end.
  std::vector<sg::ActivityPtr> ended;

  Seconds now() const { return sg::Engine::get_clock() + ahead; }

  void await_first() {
    if (timers.empty() || pending.empty()) return;
    const Seconds moment = timers.top().end;
    if (!awaited.empty() && *awaited.begin() <= moment) return;
    awaited.insert(moment);
    const Seconds wait = std::max(0.0, moment - now());
    sg::ExecPtr exec = sg::Exec::init()->set_host(sink)->set_flops_amount(wait);
    pending.emplace(exec.get(), Pending{exec, {}, moment});
    start(*exec);
  }

  void reached(Seconds moment) {
    awaited.erase(moment);
    end_timers(moment);
    await_first();
  }

  void end_timers(Seconds moment) {
    while (!timers.empty() && timers.top().end <= moment) {
      const Token token = timers.top().token;
      timers.pop();
      (*handler)(token);
    }
  }

  // Ends timers, moment by moment, until a flow starts on shared links or none is left.
  void run_timers() {
    while (pending.empty() && !timers.empty()) {
      const Seconds moment = timers.top().end;
      ahead = std::max(ahead, moment - sg::Engine::get_clock());
      end_timers(moment);
    }
  }

  void done(const sg::Activity& activity) {
    const auto it = pending.find(&activity);
    if (it == pending.end()) return;
    const Token token = it->second.token;
    const Seconds moment = it->second.moment;
    constexpr std::size_t kKept = 4096;
    if (ended.size() == 2 * kKept) ended.erase(ended.begin(), ended.begin() + kKept);
    ended.push_back(std::move(it->second.activity));
    pending.erase(it);
    if (moment < kNever) {
      reached(moment);
    } else {
      (*handler)(token);
    }
  }
};

Fluid::Fluid(const std::vector<FlowLink>& links, const std::vector<Route>& routes)
    : parts_(std::make_unique<Parts>()) {
  Parts& s = *parts_;
  s.engine = std::make_unique<sg::Engine>(&s.argc, s.argv);
  // Exactly latency + bytes / bandwidth, without the wide-area factors of the default model.
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/crosstraffic:0");
  sg::Engine::set_config("network/TCP-gamma:0");

  auto* zone = star_zone(*s.engine);
  std::vector<sg::Link*> made;
  made.reserve(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    auto* link = add_link(*zone, "l" + std::to_string(i), links[i].capacity * kUnits);
    link->set_latency(0);
    made.push_back(link->seal());
  }
  s.sink = add_host(*zone, "sink");
  s.sink->set_core_count(kTimerCores);
  for (std::size_t r = 0; r < routes.size(); ++r) {
    Parts::Way& way = s.ways.emplace_back();
    std::vector<sg::LinkInRoute> shared;
    for (const int link : routes[r]) {
      if (links[index(link)].per_flow) {
        way.limit = std::min(way.limit, links[index(link)].capacity);
      } else {
        shared.emplace_back(made[index(link)]);
      }
    }
    if (shared.empty()) continue;
    if (way.limit < kNever) {
      auto* own = add_link(*zone, "o" + std::to_string(r), way.limit * kUnits);
      own->set_latency(0);
      own->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE);
      shared.emplace_back(own->seal());
    }
    way.source = add_host(*zone, "r" + std::to_string(r));
    // Bypasses the zone's own routes, which would name a link once.
    zone->add_bypass_route(way.source->get_netpoint(), s.sink->get_netpoint(), nullptr, nullptr,
                           shared);
  }
  zone->seal();
  when_completed([&s](const sg::Activity& activity) { s.done(activity); });
}

Fluid::~Fluid() = default;

void Fluid::serve(std::int32_t job) { parts_->job = job; }

Seconds Fluid::now() const { return parts_->now(); }

void Fluid::start_timer(Seconds seconds, Token token) {
  token.job = parts_->job;
  parts_->timers.push({now() + seconds, parts_->timers_started++, token});
  parts_->await_first();
}

void Fluid::start_flow(int route, double bytes, Token token) {
  const Parts::Way& way = parts_->ways[index(route)];
  if (way.source == nullptr) {
    start_timer(way.limit < kNever ? bytes / way.limit : 0, token);
    return;
  }
  token.job = parts_->job;
  sg::CommPtr comm = sg::Comm::sendto_init(way.source, parts_->sink);
  comm->set_payload_size(static_cast<std::uint64_t>(std::llround(bytes * kUnits)));
  parts_->pending.emplace(comm.get(), Parts::Pending{comm, token});
  start(*comm);
  parts_->await_first();
}

void Fluid::run(const Handler& handler) {
  Parts& s = *parts_;
  s.handler = &handler;
  for (s.run_timers(); !s.pending.empty(); s.run_timers()) s.engine->run();
}

}  // namespace syncline::sim
