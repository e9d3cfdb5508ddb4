// Gloo's context over connections that exist already. Gloo itself listens with a port for each pair
// of ranks and takes whoever calls first for the other one.
#pragma once

#include <gloo/transport/context.h>

#include <chrono>
#include <memory>
#include <vector>

#include "live/socket.h"

namespace syncline::gloo_backend {

// `pairs`: by rank, none for `rank` itself. Throws what Gloo throws.
std::shared_ptr<gloo::transport::Context> gloo_context(int rank, std::vector<live::Socket> pairs,
                                                       std::chrono::milliseconds timeout);

}  // namespace syncline::gloo_backend
