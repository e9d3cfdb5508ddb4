#include "core/fabric/named.h"

#include <array>

namespace syncline::fabric {
namespace {

constexpr std::string_view kSimAi =
    "SimAI, astra-sim-alibabacloud/inputs/topo/gen_Topo_Template.py, its template of that name";
constexpr std::string_view kHpn =
    "Qian et al., Alibaba HPN (SIGCOMM 2024): 128 hosts a segment, two ports of 200 Gbit/s a NIC; "
    "SimAI, gen_Topo_Template.py, its template AlibabaHPN: 120 switches above, half of them a "
    "plane";
constexpr std::string_view kLlama3 =
    "Dubey et al., The Llama 3 Herd of Models (2024), 3.3.1: 16 GPUs a rack, 192 racks a pod, 8 "
    "pods at 1:7; 27 cables upwards come nearest";

// `link_gbps` is left out where cables are as fast as a NIC.
constexpr std::array kKnown{
    KnownFabric{"superpod-h100", "DGX SuperPOD: rails, 32 nodes a leaf, nothing oversubscribed",
                R"({"kind": "rail", "nodes_per_leaf": 32, "spines": 16, "links": 2})",
                "NVIDIA DGX SuperPOD Reference Architecture, DGX H100 (RA-11333-001): scalable "
                "units of 32 nodes; of four, 32 leaves, 16 spines and 1,024 cables between them"},
    KnownFabric{"spectrum-x", "rails, 64 nodes a leaf, 64 spines",
                R"({"kind": "rail", "nodes_per_leaf": 64, "spines": 64})", kSimAi},
    KnownFabric{"alibaba-hpn", "rails, two leaves a NIC (200 Gbit/s each), one plane",
                R"({"kind": "rail", "nodes_per_leaf": 128, "spines": 120, "tors": 2,
                    "link_gbps": 400})",
                kHpn},
    KnownFabric{"alibaba-hpn-dual-plane", "the same in two planes, which never meet",
                R"({"kind": "rail", "nodes_per_leaf": 128, "spines": 60, "tors": 2, "planes": 2,
                    "link_gbps": 400})",
                kHpn},
    KnownFabric{"dcn+", "all NICs of 8 nodes at one leaf, 8:1 oversubscribed",
                R"({"kind": "leaf_spine", "nodes_per_leaf": 8, "spines": 8, "link_gbps": 400})",
                kSimAi},
    KnownFabric{"leaf-spine-1:1", "Ethernet, 16 nodes a leaf, nothing oversubscribed",
                R"({"kind": "leaf_spine", "nodes_per_leaf": 16, "oversubscription": 1})",
                "a common shape, of no site in particular"},
    KnownFabric{"leaf-spine-2:1", "Ethernet, 16 nodes a leaf, half of their ports upwards",
                R"({"kind": "leaf_spine", "nodes_per_leaf": 16, "oversubscription": 2})",
                "a common shape, of no site in particular"},
    KnownFabric{"leaf-spine-4:1", "Ethernet, 16 nodes a leaf, a quarter of their ports upwards",
                R"({"kind": "leaf_spine", "nodes_per_leaf": 16, "oversubscription": 4})",
                "a common shape, of no site in particular"},
    KnownFabric{"llama3-24k", "three levels: racks of 2 nodes, pods of 192 racks, 7:1 above pods",
                R"({"kind": "fat_tree", "down": [2, 192, 8], "up": [1, 16, 27],
                    "link_gbps": [3200, 400, 400]})",
                kLlama3},
    KnownFabric{
        "slingshot", "dragonfly: 74 groups of 32 switches, a node's NICs at four of them",
        R"({"kind": "dragonfly", "groups": 74, "switches": 32, "hosts": 16,
                    "switches_per_node": 4, "links": 4, "link_gbps": 200})",
        "Lockwood, Frontier (glennklockwood.com): 128 nodes of 4 NICs a group, 16 endpoints "
        "a switch, 4 links between two groups; LUMI user guide, network: each of a node's "
        "endpoints at another switch"},
    KnownFabric{"tpu-v4-torus", "16 x 16 x 16 chips, six links of 400 Gbit/s each",
                R"({"kind": "torus", "sizes": [16, 16, 16], "link_gbps": 400})",
                "Jouppi et al., TPU v4 (ISCA 2023): 3D torus of 4,096 chips, 50 GB/s a link"},
    KnownFabric{"tpu-v5e-torus", "16 x 16 chips, four links of 400 Gbit/s each",
                R"({"kind": "torus", "sizes": [16, 16], "link_gbps": 400})",
                "Google Cloud TPU v5e: 2D torus of 256 chips, 1,600 Gbit/s a chip, 1.6 TB/s across "
                "the middle"}};

}  // namespace

std::span<const KnownFabric> known_fabrics() { return kKnown; }

}  // namespace syncline::fabric
