// An independent check of fabrics: the same ring all-reduce as a program of actors and mailboxes on
// SimGrid's own zones, with SimGrid's own routes, beside what Syncline says of its links and
// routes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "core/run/model_executor.h"
#include "sim/sim_executor.h"
#include "tests/support/fabrics.h"

namespace syncline::sim {
namespace {

namespace sg = simgrid::s4u;

constexpr std::int64_t kElements = 1 << 22;  // fp32

using MakeZone = std::function<sg::NetZone*(const sg::ClusterCallbacks&)>;

// One rank: in each of 2 (n-1) rounds a chunk to the next and one from the one before.
void walk_ring(int rank, int ranks) {
  const double chunk = 4.0 * kElements / ranks;
  sg::Mailbox* out = sg::Mailbox::by_name("to" + std::to_string((rank + 1) % ranks));
  sg::Mailbox* in = sg::Mailbox::by_name("to" + std::to_string(rank));
  static int payload = 0;
  for (int round = 0; round < 2 * (ranks - 1); ++round) {
    int* received = nullptr;
    const sg::CommPtr sent = out->put_async(&payload, static_cast<std::uint64_t>(chunk));
    const sg::CommPtr awaited = in->get_async(&received);
    sent->wait();
    awaited->wait();
  }
}

Seconds all_reduce_on(const MakeZone& make_zone, const std::vector<int>& places) {
  int argc = 3;
  char name[] = "s4u";
  char log[] = "--log=root.thresh:critical";
  char optim[] = "--cfg=network/optim:Full";
  char* argv[] = {name, log, optim, nullptr};
  sg::Engine engine(&argc, argv);
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/crosstraffic:0");
  sg::Engine::set_config("network/TCP-gamma:0");
  std::vector<sg::Host*> hosts;
  const sg::ClusterCallbacks callbacks(
      [&](sg::NetZone* zone, const std::vector<unsigned long>&, unsigned long)
          -> std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*> {
        sg::Host* host = zone->create_host("h" + std::to_string(hosts.size()), 1e9)->seal();
        hosts.push_back(host);
        return {host->get_netpoint(), nullptr};
      });
  make_zone(callbacks)->seal();
  const int ranks = static_cast<int>(places.size());
  for (int rank = 0; rank < ranks; ++rank) {
    sg::Host* host = hosts.at(static_cast<std::size_t>(places[static_cast<std::size_t>(rank)]));
    sg::Actor::create("rank" + std::to_string(rank), host, [=] { walk_ring(rank, ranks); });
  }
  engine.run();
  return sg::Engine::get_clock();
}

// SimGrid has one engine a process.
Seconds in_a_child(const std::function<Seconds()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    const Seconds answer = work();
    const bool told = ::write(ends[1], &answer, sizeof answer) == sizeof answer;
    ::_exit(told ? 0 : 1);
  }
  Seconds answer = -1;
  if (::read(ends[0], &answer, sizeof answer) != sizeof answer) answer = -1;
  ::close(ends[0]);
  ::close(ends[1]);
  ::waitpid(child, nullptr, 0);
  return answer;
}

// What Syncline says, message by message and in closed form.
void expect_same(const char* what, const MakeZone& make_zone, const fabric::Topology& topology,
                 const std::vector<int>& places, double model_tolerance) {
  const int ranks = static_cast<int>(places.size());
  Cluster cluster = flat_cluster(ranks);
  cluster.tiers[0].latency = 0;
  cluster = on_fabric(cluster, topology, places);
  const plan::Plan plan =
      plan_of(ranks, {{1, collective_of(collective::CollectiveKind::kAllReduce, "ring",
                                        collective::world_group(ranks), kElements)}});
  run::ExecutorSettings settings{cluster, {}, 1};
  settings.simulation.grain = Simulation::Grain::kStep;
  const Seconds step = time_of(*make_sim_executor(settings), plan);
  const Seconds model = time_of(*run::make_model_executor({cluster, {}, 1}), plan);
  const Seconds s4u = in_a_child([&] { return all_reduce_on(make_zone, places); });
  const Seconds alone = 2.0 * (ranks - 1) / ranks * 4 * kElements / kNodePort;
  std::printf("%-34s S4U %.3f ms, simulated %+.2f %%, model %+.2f %%, contention x%.2f\n", what,
              1e3 * s4u, 100 * (step / s4u - 1), 100 * (model / s4u - 1), s4u / alone);
  EXPECT_NEAR(step, s4u, 1e-3 * s4u) << what;
  EXPECT_NEAR(model, s4u, model_tolerance * s4u) << what;
}

std::vector<int> places_of(const fabric::Topology& topology, fabric::Placement how) {
  return fabric::placed(topology, topology.all_nodes(), how, 7);
}

constexpr auto kSplit = sg::Link::SharingPolicy::SPLITDUPLEX;

TEST(SimGridAlone, SaysTheSameOfFatTrees) {
  const MakeZone zone = [](const sg::ClusterCallbacks& callbacks) {
    return sg::create_fatTree_zone("tree", nullptr, {2, {4, 4}, {1, 2}, {1, 1}}, callbacks,
                                   kNodePort, 0, kSplit);
  };
  const auto topology = fabric::fat_tree({{4, 4}, {1, 2}, {1, 1}, {0, kNodePort}});
  expect_same("fat tree 2:1, packed", zone, topology,
              places_of(topology, fabric::Placement::kPacked), 1e-3);
  expect_same("fat tree 2:1, dealt out", zone, topology,
              places_of(topology, fabric::Placement::kSpread), 1e-3);
}

TEST(SimGridAlone, SaysTheSameOfTori) {
  const MakeZone zone = [](const sg::ClusterCallbacks& callbacks) {
    return sg::create_torus_zone("torus", nullptr, {5, 3, 3}, callbacks, kNodePort, 0, kSplit);
  };
  const auto topology = fabric::torus({5, 3, 3}, kNodePort);
  expect_same("torus 5 x 3 x 3, packed", zone, topology,
              places_of(topology, fabric::Placement::kPacked), 1e-3);
  expect_same("torus 5 x 3 x 3, scattered", zone, topology,
              places_of(topology, fabric::Placement::kScattered), 0.05);
}

TEST(SimGridAlone, SaysTheSameOfDragonflies) {
  const MakeZone zone = [](const sg::ClusterCallbacks& callbacks) {
    return sg::create_dragonfly_zone("dragonfly", nullptr, {{4, 1}, {1, 1}, {4, 1}, 2}, callbacks,
                                     kNodePort, 0, kSplit);
  };
  const auto topology = fabric::dragonfly({4, 4, 2, 1, kNodePort, kNodePort});
  expect_same("dragonfly 4 x 4 x 2, packed", zone, topology,
              places_of(topology, fabric::Placement::kPacked), 1e-3);
  expect_same("dragonfly 4 x 4 x 2, scattered", zone, topology,
              places_of(topology, fabric::Placement::kScattered), 0.05);
}

}  // namespace
}  // namespace syncline::sim
