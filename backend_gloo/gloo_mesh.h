// Gloo's connections between all ranks: each communicating stream has its own context, so that
// streams do not queue for each other. Carries out a plan's collectives round by round, by the same
// transfers that the simulation costs.
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

// Returns the library's version: "0.5.0".
std::string gloo_version();

class GlooMesh {
 public:
  // The channel must outlive the mesh.
  explicit GlooMesh(live::ControlChannel& channel);
  ~GlooMesh();
  GlooMesh(const GlooMesh&) = delete;
  GlooMesh& operator=(const GlooMesh&) = delete;

  // Connects the missing ones of `streams` communicators. All ranks must call it with the same
  // number before one uses a communicator. Throws MachineError.
  void connect(int streams);

  // Carries out one of the payload's collectives on communicator `stream` (from 0), on the bytes
  // from `begin` on. Returns the bytes that this rank sent. Throws MachineError. Communicators may
  // run concurrently, each from one thread. On each of them all ranks must run the same collectives
  // in the same order.
  Bytes run(int stream, const collective::Collective& collective, const run::Payload& layout,
            std::int64_t begin, std::byte* payload);

 private:
  class Communicator;
  struct State;
  std::unique_ptr<State> state_;
};

// Gloo itself opens a port for each pair of ranks and takes the first caller for the peer.

// Returns Gloo's context over existing connections. `pairs`: by rank, none for `rank`. Throws.
std::shared_ptr<gloo::transport::Context> gloo_context(int rank, std::vector<live::Socket> pairs,
                                                       std::chrono::milliseconds timeout);

}  // namespace syncline::gloo_backend
