#include "sim/fluid.h"

#include <cmath>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>

namespace syncline::sim {
namespace {

namespace sg = simgrid::s4u;

// Timers are computations of one operation a second, each on a core of its own.
constexpr int kTimerCores = 1 << 20;

// SimGrid counts whole units; a share of a small payload is not always a whole byte.
constexpr double kUnits = 1024;

// What every flow pays on SimGrid's clock, which goes a little faster or slower than time so that
// this is a power of two: SimGrid weighs a flow by 1 / latency, adds up the weights on a link and
// takes them away one by one until nothing should be left. With powers of two it is nothing; else
// rounding leaves a link that is in use by no flow, and 3.32 follows it into nowhere.
double even_latency(Seconds latency) { return std::exp2(std::round(std::log2(latency))); }

}  // namespace

struct Fluid::Parts {
  // SimGrid reads its command line and writes its configuration to stderr unless told not to.
  int argc = 5;
  char name[9] = "syncline";
  char log[27] = "--log=root.thresh:critical";
  char precision[29] = "--cfg=surf/precision:1e-12";
  char maxmin[30] = "--cfg=maxmin/precision:1e-9";
  // Lazy updates, the default, lose sight of a link that two flows reach over different routes once
  // flows have latency (seen with 3.32: two of three flows ran past a full link).
  char optim[27] = "--cfg=network/optim:Full";
  char* argv[6] = {name, log, precision, maxmin, optim, nullptr};
  std::unique_ptr<sg::Engine> engine;
  std::vector<sg::Host*> sources;  // by route
  sg::Host* sink = nullptr;
  double second = 1;  // in units of SimGrid's clock
  const Handler* handler = nullptr;

  struct Pending {
    sg::ActivityPtr activity;
    Token token;
  };
  std::unordered_map<const sg::Activity*, Pending> pending;
  // An activity must outlive the callback that tells of its end.
  std::vector<sg::ActivityPtr> ended;

  void keep(const sg::ActivityPtr& activity, Token token) {
    pending.emplace(activity.get(), Pending{activity, token});
  }

  void done(const sg::Activity& activity) {
    const auto it = pending.find(&activity);
    if (it == pending.end()) return;
    const Token token = it->second.token;
    constexpr std::size_t kKept = 4096;
    if (ended.size() == 2 * kKept) ended.erase(ended.begin(), ended.begin() + kKept);
    ended.push_back(std::move(it->second.activity));
    pending.erase(it);
    (*handler)(token);
  }
};

Fluid::Fluid(const std::vector<FlowLink>& links, const std::vector<Route>& routes, Seconds latency)
    : parts_(std::make_unique<Parts>()) {
  Parts& s = *parts_;
  if (latency > 0) s.second = even_latency(latency) / latency;
  s.engine = std::make_unique<sg::Engine>(&s.argc, s.argv);
  // Exactly latency + bytes / bandwidth, without the wide-area factors of the default model.
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/crosstraffic:0");
  sg::Engine::set_config("network/TCP-gamma:0");

  auto* zone = sg::create_star_zone("network");
  std::vector<sg::Link*> made;
  made.reserve(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    auto* link = zone->create_link("l" + std::to_string(i), links[i].capacity * kUnits / s.second);
    link->set_latency(0);
    if (links[i].per_flow) link->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE);
    made.push_back(link->seal());
  }
  // Every route leads to the sink, whose only link delays and never limits.
  constexpr double kNoLimit = 1e18;
  auto* delay = zone->create_link("delay", kNoLimit);
  delay->set_latency(latency > 0 ? even_latency(latency) : 0);
  delay->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE);
  delay->seal();
  s.sink = zone->create_host("sink", 1.0);
  s.sink->set_core_count(kTimerCores);
  zone->add_route(s.sink->get_netpoint(), nullptr, nullptr, nullptr, {sg::LinkInRoute(delay)},
                  true);
  for (std::size_t r = 0; r < routes.size(); ++r) {
    auto* host = zone->create_host("r" + std::to_string(r), 1.0);
    std::vector<sg::LinkInRoute> way;
    way.reserve(routes[r].size());
    for (const int link : routes[r]) way.emplace_back(made[static_cast<std::size_t>(link)]);
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, way, true);
    s.sources.push_back(host);
  }
  zone->seal();
  sg::Activity::on_completion_cb([&s](const sg::Activity& activity) { s.done(activity); });
}

Fluid::~Fluid() = default;

Seconds Fluid::now() const { return sg::Engine::get_clock() / parts_->second; }

void Fluid::start_timer(Seconds seconds, Token token) {
  sg::ExecPtr exec =
      sg::Exec::init()->set_host(parts_->sink)->set_flops_amount(seconds * parts_->second);
  parts_->keep(exec, token);
  exec->vetoable_start();
}

void Fluid::start_flow(int route, double bytes, Token token) {
  auto* source = parts_->sources[static_cast<std::size_t>(route)];
  sg::CommPtr comm = sg::Comm::sendto_init(source, parts_->sink);
  comm->set_payload_size(static_cast<std::uint64_t>(std::llround(bytes * kUnits)));
  parts_->keep(comm, token);
  comm->vetoable_start();
}

void Fluid::run(const Handler& handler) {
  parts_->handler = &handler;
  parts_->engine->run();
}

}  // namespace syncline::sim
