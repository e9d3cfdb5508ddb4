// Gloo's connections between all ranks: a context of its own for each communicating stream, so that
// streams do not queue behind each other, and a plan's collectives carried out on them round by
// round, by the same transfers that the simulation costs.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gloo/transport/context.h>

#include "core/run/payload.h"
#include "live/control_channel.h"
#include "live/socket.h"

namespace syncline::gloo_backend {

// Of the library: "0.5.0".
std::string gloo_version();

class GlooMesh {
 public:
  // The channel must outlive it.
  explicit GlooMesh(live::ControlChannel& channel);
  ~GlooMesh();
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  // Connects what is missing for `streams` communicators. All ranks must ask for the same, and
  // before any of them uses one. Throws MachineError.
  void connect(int streams);

  // Carries one of the payload's collectives out on communicator `stream` (from 0), on what stands
  // from `begin` on. Communicators
  // may be used side by side by one thread each; on each of them all ranks must ask for the same
  // collectives in the same order. Returns the bytes that this rank sent. Throws MachineError.
  Bytes run(int stream, const collective::Collective& collective, const run::Payload& layout,
            std::int64_t begin, std::byte* payload);

 private:
  class Communicator;
  struct State;
  std::unique_ptr<State> state_;
};

// Gloo's context over connections that exist already. Gloo itself listens with a port for each pair
// of ranks and takes whoever calls first for the other one.

// `pairs`: by rank, none for `rank` itself. Throws what Gloo throws.
std::shared_ptr<gloo::transport::Context> gloo_context(int rank, std::vector<live::Socket> pairs,
                                                       std::chrono::milliseconds timeout);

}  // namespace syncline::gloo_backend
