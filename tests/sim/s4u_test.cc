// An independent check of fabrics: the same ring all-reduce as a program of actors and mailboxes on
// SimGrid's own zones, with SimGrid's own routes, beside what Syncline says of its links and
// routes.
#include <gtest/gtest.h>
#include <simgrid/forward.h>  // for the next
#include <simgrid/version.h>

#include <functional>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/run/jobs.h"
#include "formats/fabric/files.h"
#include "tests/support/expect.h"
#include "tests/support/fabrics.h"
#include "tests/support/scratch.h"
#include "tests/support/simulated.h"
#include "tests/support/text.h"

namespace syncline::sim {
namespace {

namespace sg = simgrid::s4u;

constexpr std::int64_t kRingElements = 1 << 22;  // fp32

using AddHost = std::function<sg::Host*(sg::NetZone*)>;
using MakeZone = std::function<sg::NetZone*(sg::Engine&, const AddHost&)>;

constexpr auto kSplit = sg::Link::SharingPolicy::SPLITDUPLEX;

// What SimGrid's versions have different calls for.
using Level = std::pair<unsigned int, unsigned int>;
using Counts = std::vector<unsigned int>;
#if SIMGRID_VERSION < 40000
sg::ClusterCallbacks hosts_by(const AddHost& add) {
  return sg::ClusterCallbacks(
      [add](sg::NetZone* zone, const std::vector<unsigned long>&, unsigned long)
          -> std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*> {
        return {add(zone)->get_netpoint(), nullptr};
      });
}
sg::Host* add_host(sg::NetZone* zone, const std::string& name) {
  return zone->create_host(name, 1e9)->seal();
}

sg::NetZone* fat_tree_zone(sg::Engine&, const Counts& down, const Counts& up, const Counts& links,
                           const AddHost& add) {
  const auto levels = static_cast<unsigned int>(down.size());
  return sg::create_fatTree_zone("tree", nullptr, {levels, down, up, links}, hosts_by(add),
                                 kNodePort, 0, kSplit);
}
sg::NetZone* torus_zone(sg::Engine&, const std::vector<unsigned long>& sizes, const AddHost& add) {
  return sg::create_torus_zone("torus", nullptr, sizes, hosts_by(add), kNodePort, 0, kSplit);
}
sg::NetZone* dragonfly_zone(sg::Engine&, const Level& groups, const Level& chassis,
                            const Level& routers, unsigned int nodes, const AddHost& add) {
  return sg::create_dragonfly_zone("dragonfly", nullptr, {groups, chassis, routers, nodes},
                                   hosts_by(add), kNodePort, 0, kSplit);
}

template <typename Code>
void add_actor(sg::Engine&, const std::string& name, sg::Host* host, const Code& code) {
  sg::Actor::create(name, host, code);
}

std::string engine_text(const std::string& platform) { return platform; }
#else
sg::NetZone* filled(sg::NetZone* zone, const AddHost& add) {
  return zone->set_host_cb(
      [add](sg::NetZone* in, const std::vector<unsigned long>&, unsigned long) { return add(in); });
}
sg::Host* add_host(sg::NetZone* zone, const std::string& name) {
  return zone->add_host(name, 1e9)->seal();
}

sg::NetZone* fat_tree_zone(sg::Engine& engine, const Counts& down, const Counts& up,
                           const Counts& links, const AddHost& add) {
  const auto levels = static_cast<unsigned int>(down.size());
  return filled(engine.get_netzone_root()->add_netzone_fatTree("tree", levels, down, up, links,
                                                               kNodePort, 0, kSplit),
                add);
}
sg::NetZone* torus_zone(sg::Engine& engine, const std::vector<unsigned long>& sizes,
                        const AddHost& add) {
  return filled(engine.get_netzone_root()->add_netzone_torus("torus", sizes, kNodePort, 0, kSplit),
                add);
}
sg::NetZone* dragonfly_zone(sg::Engine& engine, const Level& groups, const Level& chassis,
                            const Level& routers, unsigned int nodes, const AddHost& add) {
  return filled(engine.get_netzone_root()->add_netzone_dragonfly(
                    "dragonfly", groups, chassis, routers, nodes, kNodePort, 0, kSplit),
                add);
}

template <typename Code>
void add_actor(sg::Engine& engine, const std::string& name, sg::Host* host, const Code& code) {
  engine.add_actor(name, host, code);
}

// 4.0 dies of a cluster that no zone holds.
std::string engine_text(const std::string& platform) {
  const std::size_t head = platform.find('>', platform.find("<platform")) + 1;
  const std::size_t tail = platform.rfind("</platform>");
  return platform.substr(0, head) + R"(<zone id="all" routing="Full">)" +
         platform.substr(head, tail - head) + "</zone></platform>";
}
#endif

// One rank: in each of 2 (n-1) rounds a chunk to the next and one from the one before.
void walk_ring(int rank, int ranks) {
  const double chunk = 4.0 * kRingElements / ranks;
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

// The hosts are those that `prepare` makes on the engine, in its order.
using Prepare = std::function<std::vector<sg::Host*>(sg::Engine&)>;

Seconds all_reduce_on(const Prepare& prepare, const std::vector<int>& places) {
  int argc = 3;
  char name[] = "s4u";
  char log[] = "--log=root.thresh:critical";
  char optim[] = "--cfg=network/optim:Full";
  char* argv[] = {name, log, optim, nullptr};
  sg::Engine engine(&argc, argv);
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/crosstraffic:0");
  sg::Engine::set_config("network/TCP-gamma:0");
  const std::vector<sg::Host*> hosts = prepare(engine);
  const int ranks = static_cast<int>(places.size());
  for (int rank = 0; rank < ranks; ++rank) {
    sg::Host* host = hosts.at(static_cast<std::size_t>(places[static_cast<std::size_t>(rank)]));
    add_actor(engine, "rank" + std::to_string(rank), host, [=] { walk_ring(rank, ranks); });
  }
  engine.run();
  return sg::Engine::get_clock();
}

Prepare made_by(const MakeZone& make_zone) {
  return [make_zone](sg::Engine& engine) {
    std::vector<sg::Host*> hosts;
    const AddHost add = [&](sg::NetZone* zone) {
      return hosts.emplace_back(add_host(zone, "h" + std::to_string(hosts.size())));
    };
    make_zone(engine, add)->seal();
    return hosts;
  };
}

// Hosts h0, h1, ... of a platform file.
Prepare loaded(const std::string& file) {
  return [file](sg::Engine& engine) {
    engine.load_platform(file);
    std::vector<sg::Host*> hosts;
    while (sg::Host* host = engine.host_by_name_or_null("h" + std::to_string(hosts.size()))) {
      hosts.push_back(host);
    }
    return hosts;
  };
}

// What Syncline says, message by message and in closed form.
void expect_same(const char* what, const Prepare& prepare, const fabric::Topology& topology,
                 fabric::Placement how, double model_tolerance) {
  const std::vector<int> places = fabric::place_nodes(topology, topology.all_nodes(), how, 7);
  const int ranks = static_cast<int>(places.size());
  Cluster cluster = flat_cluster(ranks);
  cluster.tiers[0].latency = 0;
  cluster = on_fabric(cluster, topology, places);
  const plan::Plan plan = all_reduce_plan(ranks, "ring", kRingElements);
  const Seconds step = simulated(cluster, plan, Granularity::kStep);
  const Seconds model = modelled(cluster, plan);
  // SimGrid has one engine a process.
  const Seconds s4u =
      std::stod(run::run_in_process(
          "s4u", [&] { return std::to_string(1e6 * all_reduce_on(prepare, places)); })) /
      1e6;
  const Seconds alone = 2.0 * (ranks - 1) / ranks * 4 * kRingElements / kNodePort;
  std::printf("%-34s S4U %.3f ms, simulated %+.2f %%, model %+.2f %%, contention x%.2f\n", what,
              1e3 * s4u, 100 * (step / s4u - 1), 100 * (model / s4u - 1), s4u / alone);
  EXPECT_NEAR(step, s4u, 1e-3 * s4u) << what;
  EXPECT_NEAR(model, s4u, model_tolerance * s4u) << what;
}

TEST(SimGridAlone, SaysTheSameOfFatTrees) {
  const MakeZone zone = [](sg::Engine& engine, const AddHost& add) {
    return fat_tree_zone(engine, {4, 4}, {1, 2}, {1, 1}, add);
  };
  const auto topology = fabric::fat_tree({{4, 4}, {1, 2}, {1, 1}, {0, kNodePort}});
  expect_same("fat tree 2:1, packed", made_by(zone), topology, fabric::Placement::kPacked, 1e-3);
  expect_same("fat tree 2:1, dealt out", made_by(zone), topology, fabric::Placement::kSpread, 1e-3);
}

TEST(SimGridAlone, SaysTheSameOfTori) {
  const MakeZone zone = [](sg::Engine& engine, const AddHost& add) {
    return torus_zone(engine, {5, 3, 3}, add);
  };
  const auto topology = fabric::torus({5, 3, 3}, kNodePort);
  expect_same("torus 5 x 3 x 3, packed", made_by(zone), topology, fabric::Placement::kPacked, 1e-3);
  expect_same("torus 5 x 3 x 3, scattered", made_by(zone), topology, fabric::Placement::kScattered,
              0.05);
}

TEST(SimGridAlone, SaysTheSameOfDragonflies) {
  const MakeZone zone = [](sg::Engine& engine, const AddHost& add) {
    return dragonfly_zone(engine, {4, 1}, {1, 1}, {4, 1}, 2, add);
  };
  const auto topology = fabric::dragonfly({4, 4, 2, 1, kNodePort, kNodePort});
  expect_same("dragonfly 4 x 4 x 2, packed", made_by(zone), topology, fabric::Placement::kPacked,
              1e-3);
  expect_same("dragonfly 4 x 4 x 2, scattered", made_by(zone), topology,
              fabric::Placement::kScattered, 0.05);
}

constexpr const char* kHead = R"(<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">)";

std::string cluster_text(const std::string& topology, const std::string& parameters, int nodes) {
  return std::string(kHead) + R"(<cluster id="c" prefix="h" suffix="" radical="0-)" +
         std::to_string(nodes - 1) + R"(" speed="1Gf" bw="1.25GBps" lat="0us" topology=")" +
         topology + R"(" topo_parameters=")" + parameters + R"("/></platform>)";
}

// Two leaves of two hosts, joined by one cable.
const std::string kCables = std::string(kHead) + R"(<zone id="z" routing="Floyd">
  <host id="h0" speed="1Gf"/><host id="h1" speed="1Gf"/>
  <host id="h2" speed="1Gf"/><host id="h3" speed="1Gf"/>
  <router id="a"/><router id="b"/>
  <link id="l0" bandwidth="10Gbps" latency="0us" sharing_policy="SPLITDUPLEX"/>
  <link id="l1" bandwidth="10Gbps" latency="0us" sharing_policy="SPLITDUPLEX"/>
  <link id="l2" bandwidth="10Gbps" latency="0us" sharing_policy="SPLITDUPLEX"/>
  <link id="l3" bandwidth="10Gbps" latency="0us" sharing_policy="SPLITDUPLEX"/>
  <link id="trunk" bandwidth="0.625GBps" latency="0us" sharing_policy="SPLITDUPLEX"/>
  <route src="h0" dst="a"><link_ctn id="l0" direction="UP"/></route>
  <route src="h1" dst="a"><link_ctn id="l1" direction="UP"/></route>
  <route src="h2" dst="b"><link_ctn id="l2" direction="UP"/></route>
  <route src="h3" dst="b"><link_ctn id="l3" direction="UP"/></route>
  <route src="a" dst="b"><link_ctn id="trunk" direction="UP"/></route>
</zone></platform>)";

// One file, read by SimGrid and by Syncline.
TEST(SimGridAlone, SaysTheSameOfItsPlatformFiles) {
  struct File {
    const char* what;
    std::string text;
    fabric::Placement placement;
    double model_tolerance;
  };
  using enum fabric::Placement;
  const std::vector<File> files{
      {"file: fat tree", cluster_text("FAT_TREE", "2;4,4;1,2;1,1", 16), kSpread, 1e-3},
      {"file: torus", cluster_text("TORUS", "4,3,2", 24), kPacked, 1e-3},
      {"file: dragonfly", cluster_text("DRAGONFLY", "3,1;2,1;3,1;2", 36), kPacked, 1e-3},
      {"file: dragonfly, scattered", cluster_text("DRAGONFLY", "3,1;2,2;3,1;2", 36), kScattered,
       0.1},
      {"file: cables", kCables, kPacked, 1e-3}};
  for (const File& each : files) {
    const test::Scratch scratch;
    const std::string file = scratch.path("platform.xml");
    test::write_text(file, engine_text(each.text));
    const fabric::Topology topology = fabric::simgrid_fabric(file, each.text, 1);
    expect_same(each.what, loaded(file), topology, each.placement, each.model_tolerance);
  }
}

TEST(PlatformFile, SaysWhatItCannotExpress) {
  const std::pair<const char*, const char*> refusals[] = {
      {R"(<cluster id="c" radical="0-3" speed="1Gf" bw="1GBps" lat="0us"/>)",
       "FLAT cluster is one switch"},
      {R"(<zone id="z" routing="Full"/>)", "routing Full"},
      {R"(<zone id="z" routing="Floyd"><host id="h0" speed="1f"/>
      <router id="r"/><link id="l" bandwidth="1GBps" latency="0"/>
      <route src="h0" dst="r"><link_ctn id="l"/></route></zone>)",
       "both directions share it"},
      {R"(<cluster id="c" bw="1GBps" sharing_policy="FATPIPE"
      topology="TORUS" topo_parameters="2,2"/>)",
       "which nothing fills"},
      {R"(<cluster id="c" bw="fast" topology="TORUS" topo_parameters="2,2"/>)", "fast"},
      {R"(<cluster id="c" bw="1GBps" topology="TORUS" topo_parameters="2,-2"/>)", "whole numbers"},
      {"", "neither"}};
  for (const auto& [inside, part] : refusals) {
    const std::string text = std::string(kHead) + inside + "</platform>";
    const auto read = [&] { fabric::simgrid_fabric("p.xml", text, 1); };
    EXPECT_TRUE(test::contains(test::input_error(read), part));
  }
}

// Bytes changed, cut off and put in twice: a fabric or a refusal.
TEST(PlatformFile, AnyBytesAreReadOrRefused) {
  int read = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed, 0);
    std::string text = seed % 2 == 0 ? kCables : cluster_text("DRAGONFLY", "3,1;2,1;3,1;2", 36);
    for (std::uint64_t change = 0; change <= random.below(4); ++change) {
      const std::size_t at = random.below(text.size());
      const auto kind = random.below(3);
      if (kind == 0) text[at] = static_cast<char>(32 + random.below(96));
      if (kind == 1) text.erase(at, random.below(40));
      if (kind == 2) text.insert(at, text.substr(random.below(text.size()), random.below(40)));
    }
    try {
      const fabric::Topology topology = fabric::simgrid_fabric("p.xml", text, 1);
      EXPECT_GT(topology.all_nodes(), 0);
      ++read;
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_LT(read, 2900);
}

}  // namespace
}  // namespace syncline::sim
