#include "imports/nccl_variables.h"

#include <charconv>

#include "core/collective/nccl.h"
#include "formats/input/document.h"
#include "formats/input/hardware_json.h"
#include "formats/scenario/scenario.h"
#include "imports/frameworks/keys.h"

namespace syncline::job {
namespace {

// DGX A100 and DGX H100 have a port of this rate for Ethernet (their data sheets).
constexpr double kAssumedEthernet = 100;

int number_in(const std::string& text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool is_off(const std::string& value) { return number_in(value) == 1; }

// A variable, and if a value of it has an effect that a scenario has keys for.
struct KnownVariable {
  const char* name;
  bool (*has_effect)(const std::string& value);
};
constexpr KnownVariable kKnown[]{
    {"NCCL_ALGO", [](const std::string& value) { return frameworks::lower(value) == "ring"; }},
    {"NCCL_MAX_NCHANNELS", [](const std::string& value) { return number_in(value) > 0; }},
    {"NCCL_IB_DISABLE", is_off},
    {"NCCL_P2P_DISABLE", is_off},
    {"NCCL_NVLS_ENABLE", [](const std::string& value) { return value == "0"; }},
    {"NCCL_NET_GDR_LEVEL",
     [](const std::string& value) { return value == "0" || value == "LOC"; }}};

// Returns the links that are left: host memory in a node, a port of Ethernet between nodes.
Json links_left() {
  hardware::KnownNode node;
  node.gpus = 2;
  node.inside = hardware::kHostMemory;
  node.outside = hardware::port(1, kAssumedEthernet, Fabric::kTcp);
  return input::known_node_json(node);
}

// Sets the links between nodes to sockets, if the node's ports are InfiniBand's or RoCE's.
void disable_rdma(const hardware::KnownNode& node, Json& cluster, std::vector<std::string>& said) {
  const Fabric fabric = node.outside.fabric;
  if (cluster.value("nodes", 1) == 1 || (fabric != Fabric::kRdma && fabric != Fabric::kRccl))
    return;
  cluster["inter"] = links_left()["inter"];
  cluster["inter"]["nics"] = 1;
  cluster["fabric"] = "tcp";
  cluster["nccl"]["gpu_direct"] = false;
  said.emplace_back(
      "TCP between nodes over one port of 100 Gbit/s, as the launch sets NCCL_IB_DISABLE=1 (--net "
      "25gbit:tcp says another)");
}

// Sets the links in a node to host memory, unless they are that already.
void disable_peers(const hardware::KnownNode& node, Json& cluster, std::vector<std::string>& said) {
  if (node.gpus == 1 || node.inside.reached < 1) return;
  cluster["intra"] = links_left()["intra"];
  cluster["intra"]["nics"] = 1;
  cluster["nccl"]["nvlink"] = cluster["nccl"]["nvswitch"] = false;
  said.emplace_back(
      "messages in a node through the host's memory at 5.5 GB/s, as measured on 2 RTX 3090, for "
      "the launch sets NCCL_P2P_DISABLE=1");
}

// Sets the channels that NCCL may use, if they are fewer than it would find.
void limit_channels(int most, Json& scenario, std::vector<std::string>& said) {
  const Cluster cluster =
      input::parse_scenario(input::document_of("the scenario", scenario)).cluster;
  if (cluster.ranks() == 1 || cluster.library != Library::kNccl) return;
  collective::Groups all;
  all.size = cluster.ranks();
  const double found = collective::nccl_topology(cluster, all).ring.channels;
  if (most >= found) return;
  scenario["cluster"]["nccl"]["channels"] = most;
  said.push_back("cluster.nccl.channels " + std::to_string(most) +
                 ", as the launch sets NCCL_MAX_NCHANNELS");
}

}  // namespace

Variables known_nccl_variables(Variables& environment) {
  Variables known;
  for (const auto& [name, has_effect] : kKnown) {
    const auto found = environment.find(name);
    if (found == environment.end() || !has_effect(found->second)) continue;
    known.insert(environment.extract(found));
  }
  return known;
}

std::vector<std::string> take_nccl_variables(const Variables& variables,
                                             const hardware::KnownNode& node, Json& scenario) {
  std::vector<std::string> said;
  Json& cluster = scenario["cluster"];
  if (variables.contains("NCCL_IB_DISABLE")) disable_rdma(node, cluster, said);
  if (variables.contains("NCCL_P2P_DISABLE")) disable_peers(node, cluster, said);
  if (variables.contains("NCCL_NVLS_ENABLE")) cluster["nccl"]["nvswitch"] = false;
  if (variables.contains("NCCL_NET_GDR_LEVEL")) cluster["nccl"]["gpu_direct"] = false;
  if (variables.contains("NCCL_ALGO")) {
    for (Json& strategy : scenario["strategies"]) {
      if (!strategy.contains("algorithm")) strategy["algorithm"] = "ring";
    }
    said.emplace_back("rings, as the launch sets NCCL_ALGO=Ring, by the links' rates");
  }
  if (const auto most = variables.find("NCCL_MAX_NCHANNELS"); most != variables.end()) {
    limit_channels(number_in(most->second), scenario, said);
  }
  return said;
}

}  // namespace syncline::job
