// SimGrid behind a small interface: timers, and flows that share links max-min fairly. The only
// file that knows SimGrid. One instance a process, used once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/sim/flows.h"

namespace syncline::sim {

class Fluid {
 public:
  // What the handler receives when a timer or a flow is done.
  struct Token {
    std::int32_t kind = 0;
    std::int32_t a = 0;
    std::int32_t b = 0;
    std::int32_t job = 0;  // whose it is: serve
  };
  using Handler = std::function<void(Token)>;

  // Without latency: SimGrid divides a link in inverse proportion to it. Who starts a flow waits
  // before. A flow claims a link as often as its route names it.
  Fluid(const std::vector<FlowLink>& links, const std::vector<Route>& routes);
  ~Fluid();
  Fluid(const Fluid&) = delete;
  Fluid& operator=(const Fluid&) = delete;

  // What is started from here on is this job's.
  void serve(std::int32_t job);

  Seconds now() const;
  void start_timer(Seconds seconds, Token token);
  void start_flow(int route, double bytes, Token token);
  // Runs until nothing is left to wait for; `handler` may start more.
  void run(const Handler& handler);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace syncline::sim
