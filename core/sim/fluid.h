// A small interface to SimGrid: timers, and flows that share links max-min fairly. A flow that
// shares no link is a timer. The only file that knows SimGrid. One instance per process, used once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/sim/flows.h"

namespace syncline::sim {

class Fluid {
 public:
  // The handler's argument when a timer or a flow is done.
  struct Token {
    std::int32_t kind = 0;
    std::int32_t a = 0;
    std::int32_t b = 0;
    std::int32_t job = 0;  // its owner: see serve()
  };
  using Handler = std::function<void(Token)>;

  // Builds links without latency, because SimGrid shares a link in inverse proportion to it:
  // callers wait before they start a flow. A flow claims a link as often as its route names it.
  Fluid(const std::vector<FlowLink>& links, const std::vector<Route>& routes);
  ~Fluid();
  Fluid(const Fluid&) = delete;
  Fluid& operator=(const Fluid&) = delete;

  // Assigns all that is started from here on to this job.
  void serve(std::int32_t job);

  Seconds now() const;
  void start_timer(Seconds seconds, Token token);
  void start_flow(int route, double bytes, Token token);
  // Runs until no timer or flow is left; `handler` may start more.
  void run(const Handler& handler);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace syncline::sim
