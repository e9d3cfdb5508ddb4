// NCCL's topology file: nodes of data sheets as it writes them are those of the data sheets.
#include <gtest/gtest.h>

#include "imports/init.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"

namespace syncline::job {
namespace {

std::string pci(const std::string& bus, const char* kind, const char* speed,
                const std::string& inside) {
  return "<pci busid=\"" + bus + "\" class=\"" + kind + "\" link_speed=\"" + speed +
         "\" link_width=\"16\">" + inside + "</pci>\n";
}

std::string bus_of(int gpu) { return "0000:0" + std::to_string(gpu) + ":00.0"; }

// `links`: of each GPU, {other, count}; of the other -1 it is a switch.
using Links = std::vector<std::vector<std::pair<int, int>>>;

std::string gpus(int sm, const Links& all, const char* speed) {
  std::string text;
  for (std::size_t gpu = 0; gpu < all.size(); ++gpu) {
    std::string inside = "<gpu dev=\"" + std::to_string(gpu) + "\" sm=\"" + std::to_string(sm) +
                         "\" rank=\"0\" gdr=\"1\">";
    for (const auto& [other, count] : all[gpu]) {
      inside += "<nvlink target=\"" + (other < 0 ? "0000:c4:00.0" : bus_of(other)) + "\" count=\"" +
                std::to_string(count) + "\" tclass=\"" + (other < 0 ? "0x068000" : "0x030200") +
                "\"/>";
    }
    text += pci(bus_of(static_cast<int>(gpu)), "0x030200", speed, inside + "</gpu>");
  }
  return text;
}

std::string nets(int count, const char* name, int speed, int gdr) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += pci("0000:5" + std::to_string(i) + ":00.0", "0x020700", "16.0 GT/s PCIe",
                "<nic><net name=\"" + (name + std::to_string(i)) + "\" speed=\"" +
                    std::to_string(speed) + "\" gdr=\"" + std::to_string(gdr) + "\"/></nic>");
  }
  return text;
}

std::string cpu(const std::string& vendor, const std::string& inside, const char* host = "0x1") {
  return "<cpu host_hash=\"" + std::string(host) + "\" vendor=\"" + vendor + "\">" + inside +
         "</cpu>\n";
}

class NcclNode : public testing::Test {
 protected:
  hardware::KnownNode read(const std::string& inside, const std::string& gpu = "",
                           const std::string& net = "") {
    test::write_text(path(), "<system version=\"1\">\n" + inside + "</system>\n");
    return nccl_node(path(), gpu, net);
  }

  std::string refusal(const std::string& text, const std::string& gpu = "") {
    test::write_text(path(), text);
    return test::input_error([&] { (void)nccl_node(path(), gpu, ""); });
  }

  std::string path() const { return scratch_.path("topo.xml"); }

  test::Scratch scratch_;
};

void expect_alike(const hardware::KnownNode& node, const char* name) {
  const hardware::KnownNode& known = *hardware::find_node(name);
  const auto exact = [](const hardware::KnownNode& one) {
    return std::tuple{one.gpus,
                      one.inside.latency,
                      one.outside.count,
                      one.outside.bandwidth,
                      one.outside.latency,
                      one.outside.fabric,
                      one.gpu_direct,
                      one.cpu};
  };
  EXPECT_EQ(exact(node), exact(known)) << name;
  EXPECT_DOUBLE_EQ(node.inside.bandwidth, known.inside.bandwidth) << name;
}

// Twelve links of each GPU lead to six switches, which are one; two ports are for storage.
TEST_F(NcclNode, ADgxA100MatchesItsDataSheet) {
  const Links links(8, std::vector<std::pair<int, int>>(6, {-1, 2}));
  const std::string half = gpus(80, links, "16.0 GT/s PCIe");
  const std::string ports = nets(8, "mlx5_", 200000, 1) + nets(2, "mlx5_bond_", 100000, 1);
  expect_alike(read(cpu("AuthenticAMD", half) + cpu("AuthenticAMD", ports), "a100-sxm-40gb"),
               "dgx-a100");
  const Links four(4, {{-1, 18}});
  const auto grace = read(cpu("", gpus(90, four, "") + nets(4, "cxi", 200000, 1)), "gh200");
  expect_alike(grace, "alps-gh200");
}

// The cube of a DGX-1 has no switch: six links of a GPU lead to four others.
TEST_F(NcclNode, ADgx1MatchesItsDataSheet) {
  const Links cube{{{1, 1}, {2, 1}, {3, 2}, {4, 2}}, {{0, 1}, {2, 2}, {3, 1}, {5, 2}},
                   {{0, 1}, {1, 2}, {3, 2}, {6, 1}}, {{0, 2}, {1, 1}, {2, 2}, {7, 1}},
                   {{0, 2}, {5, 1}, {6, 1}, {7, 2}}, {{1, 2}, {4, 1}, {6, 2}, {7, 1}},
                   {{2, 1}, {4, 1}, {5, 2}, {7, 2}}, {{3, 1}, {4, 2}, {5, 1}, {6, 2}}};
  const std::string all = gpus(70, cube, "8 GT/s") + nets(4, "mlx5_", 100000, 1);
  expect_alike(read(cpu("GenuineIntel", all), "v100-sxm"), "dgx-1");
}

// Bridges between pairs leave PCIe in between, by its slowest link upwards.
TEST_F(NcclNode, PairsAreJoinedByPcie) {
  const Links pairs{{{1, 12}}, {{0, 12}}, {{3, 12}}, {{2, 12}}};
  const auto boxed = [&](const char* gpu, const char* above) {
    return cpu("GenuineIntel", pci("0000:aa:00.0", "0x060400", above, gpus(90, pairs, gpu)));
  };
  const auto rate = [&](const char* gpu, const char* above) {
    return read(boxed(gpu, above), "h100-nvl").inside.bandwidth;
  };
  EXPECT_NEAR(rate("32.0 GT/s PCIe", "32.0 GT/s PCIe"), 63.0e9, 0.1e9);
  EXPECT_NEAR(rate("32.0 GT/s PCIe", "16.0 GT/s PCIe"), 31.5e9, 0.1e9);
  EXPECT_NEAR(rate("5 GT/s", "16.0 GT/s PCIe"), 8e9, 1);
  EXPECT_NEAR(rate("8 GT/s", ""), 15.75e9, 0.1e9);
  EXPECT_NEAR(rate("", ""), 63e9, 1);  // as is usual
  // One pair alone has its bridge.
  const Links one{{{1, 12}}, {{0, 12}}};
  EXPECT_NEAR(read(cpu("", gpus(90, one, "")), "h100-nvl").inside.bandwidth, 300e9, 1);
  // Cards that cannot reach each other go through host memory whatever their slots are.
  const Links none(2);
  EXPECT_EQ(read(cpu("", gpus(89, none, "16 GT/s")), "rtx-4090").inside.reached,
            hardware::kHostMemory.reached);
}

TEST_F(NcclNode, NicsAreWhatNcclCallsThem) {
  const Links links(8, {{-1, 18}});
  const std::string all = gpus(90, links, "");
  const auto fabric = [&](const std::string& ports) {
    return read(cpu("", all + ports), "h100-sxm").outside.fabric;
  };
  EXPECT_EQ(fabric(nets(4, "rdmap79s", 100000, 1)), Fabric::kEfa);
  EXPECT_EQ(fabric(nets(4, "hsn", 200000, 0)), Fabric::kSlingshot);
  EXPECT_EQ(fabric(nets(4, "eth", 200000, 0)), Fabric::kTcp);
  EXPECT_EQ(fabric(nets(4, "mlx5_", 200000, 0)), Fabric::kRdma);
  EXPECT_FALSE(read(cpu("", all + nets(4, "mlx5_", 200000, 0)), "h100-sxm").gpu_direct);
  const auto given = read(cpu("", all + nets(4, "eth", 25000, 0)), "h100-sxm", "8x400gbit:rdma");
  EXPECT_EQ(given.outside.count, 8);
  EXPECT_TRUE(given.gpu_direct);
  EXPECT_EQ(read(cpu("", all), "h100-sxm").outside.count, 0);
  // Machines joined by NVLink stand in one file: this is the first.
  EXPECT_EQ(read(cpu("", all, "0x1") + cpu("", all, "0x2"), "h100-sxm").gpus, 8);
}

// Files for virtual machines give places alone: all else is as usual.
TEST_F(NcclNode, WithoutGpusTheirPlacesCount) {
  const std::string places = pci("a", "0x030200", "16 GT/s", "") + pci("b", "0x020700", "", "") +
                             pci("c", "0x030200", "16 GT/s", "");
  const auto node = read(cpu("AuthenticAMD", places), "a100-sxm-80gb", "2x200gbit:rdma");
  EXPECT_EQ(node.gpus, 2);
  EXPECT_NEAR(node.inside.bandwidth, 300e9, 1);
  EXPECT_EQ(node.outside.count, 2);
}

TEST_F(NcclNode, SaysWhatIsWrong) {
  const auto whole = [](const std::string& text) { return "<system>" + text + "</system>"; };
  const std::string two = gpus(90, Links(2, {{-1, 18}}), "");
  EXPECT_EQ(refusal(whole(cpu("", two)), "a100-sxm-80gb"),
            "--gpu: a100-sxm-80gb has compute capability 80, the GPUs of " + path() + " 90");
  std::string deep, many;
  for (int i = 0; i < 100000; ++i) deep += "<pci>";
  for (int i = 0; i < 100001; ++i) many += "<a/>";
  const char* foreign =
      "expected NCCL's topology, <system> with GPUs (NCCL_TOPO_DUMP_FILE writes it), what "
      "`nvidia-smi topo -m` or `rocm-smi --showtopo` prints, or a log of NCCL_DEBUG=INFO";
  const std::pair<std::string, std::string> rows[] = {
      {whole(cpu("", two)),
       "its GPUs may be h100-pcie, h100-nvl, h100-sxm, h200-nvl, h200-sxm, gh200; --gpu says "
       "which"},
      {whole(cpu("", pci("a", "0x030200", "", ""))),
       "it does not say which GPUs these are; --gpu says which"},
      {whole(""), foreign},
      {"<graphs version=\"1\"/>", foreign},
      {"<system>\n<cpu>\n</system>", "line 3: mismatched tag"},
      {"", foreign},
      {"{}", foreign},
      {"<", "line 1: unclosed token"},
      {deep, "line 1: more than 64 levels"},
      {whole(many), "line 1: more than 100000 values"}};
  for (const auto& [text, what] : rows) EXPECT_EQ(refusal(text), path() + ": " + what);
  // A GPU whose links lead nowhere has none.
  EXPECT_NEAR(
      read(cpu("", gpus(80, {{{7, 12}}, {{0, 12}}}, "16 GT/s")), "a100-sxm-80gb").inside.bandwidth,
      31.5e9, 0.1e9);
  // Numbers beyond all measure are none.
  std::string huge = gpus(80, {{{1, 1}}, {{0, 1}}}, "1e308 GT/s");
  huge.replace(huge.find("count=\"1\""), 9, "count=\"1e300\"");
  test::write_text(path(), whole(cpu("", huge)));
  const auto node = nccl_node(path(), "a100-sxm-80gb", "");
  EXPECT_NEAR(node.inside.bandwidth, 31.5e9, 1);  // as is usual for its slots
}

// A box of AMD's as RCCL writes it: class of an accelerator, XGMI from each to all others.
std::string amd_gpus(const std::string& gcn, const std::string& product, int count) {
  std::string text;
  for (int gpu = 0; gpu < count; ++gpu) {
    std::string inside = "<gpu dev=\"0\" sm=\"304\" gcn=\"" + gcn + "\" rank=\"0\" gdr=\"1\">";
    for (int other = 0; other < count; ++other) {
      if (other == gpu) continue;
      inside += "<xgmi target=\"" + bus_of(other) + "\" count=\"1\" tclass=\"0x120000\"/>";
    }
    text += pci(bus_of(gpu), ("0x120000\" device=\"" + product).c_str(), "32.0 GT/s PCIe",
                inside + "</gpu>");
  }
  return text;
}

TEST_F(NcclNode, AmdsAreKnownByTheirPciDevice) {
  const std::string nics = nets(8, "mlx5_", 400000, 1);
  const auto box = [&](const std::string& gpus) { return cpu("GenuineIntel", gpus + nics); };
  const std::tuple<const char*, const char*, const char*, double> rows[] = {
      {"gfx942", "0x74a1", "mi300x", 448e9},
      {"942", "0x74b5", "mi300x", 448e9},
      {"gfx942", "0x74a5", "mi325x", 448e9},
      {"gfx950", "0x75a0", "mi350x", 537.6e9},
      {"910", "0x7408", "mi250x", 100e9}};
  for (const auto& [gcn, product, name, bandwidth] : rows) {
    const auto node = read(box(amd_gpus(gcn, product, 8)));
    EXPECT_EQ(node.name, name);
    EXPECT_EQ(node.gpus, 8);
    EXPECT_NEAR(node.inside.bandwidth, bandwidth, 1) << name;
    EXPECT_EQ(node.outside.count, 8);
  }
  // Two of a box share one link.
  EXPECT_NEAR(read(box(amd_gpus("gfx942", "0x74a1", 2))).inside.bandwidth, 64e9, 1);
  const auto whole = [&](const std::string& gpus) { return "<system>" + box(gpus) + "</system>"; };
  EXPECT_EQ(refusal(whole(amd_gpus("906", "0x66a1", 2))),
            path() +
                ": its GPUs are gfx906, PCI device '0x66a1', which names none that is known; "
                "--gpu says which");
  EXPECT_EQ(refusal(whole(amd_gpus("908", "0x738c", 2)), "mi300x"),
            "--gpu: mi300x is gfx942, the GPUs of " + path() + " are gfx908");
  EXPECT_EQ(refusal(whole(amd_gpus("gfx942", "0x74a1", 2)), "h100-sxm"),
            "--gpu: h100-sxm is not AMD's, the GPUs of " + path() + " are gfx942");
}

// NCCL writes the file that it is told to.
TEST_F(NcclNode, AnyFileMayBeTheTopology) {
  const std::string file = scratch_.path("system.txt");
  EXPECT_FALSE(is_topology_file(file));
  test::write_text(file, "<system>\n" + cpu("", gpus(90, Links(8, {{-1, 18}}), "")) + "</system>");
  EXPECT_TRUE(is_topology_file(file));
  EXPECT_FALSE(is_topology_file("dgx-h100"));
  InitOptions options{.model = "gpt2_medium", .node = file, .nodes = 1, .gpu = "h100-sxm"};
  EXPECT_EQ(init_scenario(options).scenario["cluster"]["gpus_per_node"], 8);
}

// What `nvidia-smi topo -m` prints: `links` of each pair, none where they are 0.
std::string matrix(const std::vector<std::vector<int>>& links) {
  std::string text = "\t\x1b[4m";
  for (std::size_t i = 0; i < links.size(); ++i) text += "GPU" + std::to_string(i) + "\t";
  text += "NIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\n";
  for (std::size_t i = 0; i < links.size(); ++i) {
    text += "GPU" + std::to_string(i);
    for (std::size_t j = 0; j < links.size(); ++j) {
      const std::string joined = links[i][j] > 0 ? "NV" + std::to_string(links[i][j]) : "SYS";
      text += "\t" + (i == j ? std::string(" X ") : joined);
    }
    text += "\tPIX\t0-47\t0\n";
  }
  return text + "NIC0\tPIX\tPIX\t X \t\t\n\nLegend:\n\n  X    = Self\n";
}

// Lines of nvidia-smi in the same file name the GPU; two kinds name none.
TEST_F(NcclNode, LinesOfNvidiaSmiNameTheGpu) {
  const std::string links = matrix({{0, 12}, {12, 0}});
  for (const char* line : {"GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n",
                           "0, NVIDIA A100-SXM4-80GB\n1, NVIDIA A100-SXM4-80GB\n",
                           "|   0  NVIDIA A100-SXM4-80GB          On  | 0000 |\n",
                           "|   0  Tesla A100-SXM4-80GB    On  | 0000 |\n"}) {
    test::write_text(path(), line + links);
    EXPECT_EQ(nccl_node(path(), "", "").device, "a100-sxm-80gb") << line;
  }
  EXPECT_TRUE(test::contains(refusal("GPU 0: NVIDIA A100-SXM4-80GB\nGPU 1: NVIDIA T4\n" + links),
                             "does not say which GPUs"));
}

// A way through processors is named as a guess.
TEST_F(NcclNode, PcieThroughProcessorsIsNamed) {
  const std::string text = matrix({{0, 0}, {0, 0}});
  const auto source = [&](const std::string& way) {
    std::string own = text;
    for (auto at = own.find("SYS"); at != own.npos; at = own.find("SYS", at + 1)) {
      own.replace(at, 3, way);
    }
    test::write_text(path(), own);
    return std::string(nccl_node(path(), "a100-pcie-80gb", "").source);
  };
  for (const char* way : {"PHB", "NODE", "SYS", "SOC"}) {  // SOC: before 2018
    EXPECT_TRUE(test::contains(source(way), "guessed as fast as a slot")) << way;
    EXPECT_TRUE(test::contains(source(way), "NCCL copies through the host's memory")) << way;
  }
  EXPECT_FALSE(test::contains(source("PIX"), "guessed"));
}

// So it is in NCCL's own file and log: GPUs below one bridge do not need the processor.
TEST_F(NcclNode, NcclsFilesTellWaysThroughProcessors) {
  const std::string two = gpus(80, Links(2), "16 GT/s");
  const std::string one_bridge = pci("0000:aa:00.0", "0x060400", "16 GT/s", two);
  const auto source = [&](const std::string& all) {
    return std::string(read(all, "a100-pcie-80gb").source);
  };
  EXPECT_TRUE(test::contains(source(cpu("GenuineIntel", two)), "through processors"));
  EXPECT_FALSE(test::contains(source(cpu("GenuineIntel", one_bridge)), "through processors"));
  const auto logged = [&](const std::string& line) {
    const std::string head = "n1:7:7 [0] NCCL INFO ";
    test::write_text(path(), head + "comm 0x1 rank 0 nranks 2 busId 1000 - Init COMPLETE\n" + head +
                                 "comm 0x1 rank 1 nranks 2 busId 2000 - Init COMPLETE\n" + head +
                                 line + "\n");
    return std::string(nccl_node(path(), "a100-pcie-80gb", "").source);
  };
  for (const char* line : {"GPU/1000 :GPU/0-1000 (0/5000.0/LOC) GPU/0-2000 (4/24.0/PHB)",
                           "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct"}) {
    EXPECT_TRUE(test::contains(logged(line), "through processors")) << line;
  }
  EXPECT_FALSE(test::contains(
      logged("GPU/1000 :GPU/0-1000 (0/5000.0/LOC) GPU/0-2000 (2/24.0/PIX) CPU/0-0 (1/24.0/PHB)"),
      "through processors"));
}

// Files that people wrote by hand say no class of a PCI device with a GPU in it, or a bridge's.
TEST_F(NcclNode, WithoutAClassItsGpuCounts) {
  for (const char* kind : {"", " class=\"0x060400\""}) {
    const std::string one = "<pci busid=\"0000:01:00.0\"" + std::string(kind) + ">";
    EXPECT_EQ(read("<cpu>" + one +
                       "<gpu dev=\"0\" sm=\"90\"/></pci>"
                       "<pci busid=\"0000:02:00.0\"><gpu dev=\"1\" sm=\"90\"/></pci></cpu>",
                   "h100-sxm")
                  .gpus,
              2);
  }
  EXPECT_EQ(refusal("<system><cpu><pci busid=\"0000:01:00.0\"><gpu dev=\"0\" sm=\"80\"/>"
                    "<gpu dev=\"1\" sm=\"80\"/></pci></cpu></system>",
                    "a100-sxm-80gb"),
            path() +
                ": <pci busid=\"0000:01:00.0\"> has 2 <gpu>: NCCL reads the first; give "
                "each a <pci> of its own");
}

// NVLinks by hand have no class of their other ends, and each pair shows all links of a GPU.
TEST_F(NcclNode, LinksWithoutClassesLeadToGpusOfTheFile) {
  const auto box = [](const char* first, const char* second, int count) {
    const auto one = [&](const char* bus, const char* dev, const std::string& other) {
      std::string links = "<nvlink target=\"" + other + "\" count=\"" + std::to_string(count) +
                          "\"/><nvlink target=\"0000:77:00.0\" count=\"" + std::to_string(count) +
                          "\"/>";
      return "<pci busid=\"" + std::string(bus) + "\"><gpu dev=\"" + dev + "\" sm=\"90\">" + links +
             "</gpu></pci>";
    };
    return "<cpu>" + one("0000:01:00.0", "0", second) + one("0000:02:00.0", "1", first) + "</cpu>";
  };
  EXPECT_NEAR(read(box("0000:01:00.0", "0000:02:00.0", 18), "h100-sxm").inside.bandwidth, 450e9, 1);
  EXPECT_NEAR(read(box("0", "1", 18), "h100-sxm").inside.bandwidth, 450e9, 1);
  EXPECT_NEAR(read(box("0", "1", 4), "h100-sxm").inside.bandwidth, 200e9, 1);
}

// A PCI device names NVIDIA's GPU where its compute capability leaves several.
TEST_F(NcclNode, NvidiasAreKnownByTheirPciDevice) {
  const auto box = [](const char* first, const char* second) {
    const auto one = [](const char* bus, const char* product) {
      return "<pci busid=\"" + std::string(bus) + "\" class=\"0x030200\" device=\"" + product +
             "\"><gpu dev=\"0\" sm=\"90\"/></pci>";
    };
    return cpu("GenuineIntel", one("a", first) + one("b", second));
  };
  EXPECT_EQ(read(box("0x2330", "0x2330")).name, "h100-sxm");
  EXPECT_EQ(read(box("0x2335", "0x2335")).name, "h200-sxm");
  const auto whole = [](const std::string& text) { return "<system>" + text + "</system>"; };
  for (const char* other : {"0x2335", "0x9999"}) {
    EXPECT_TRUE(test::contains(refusal(whole(box("0x2330", other))), "its GPUs may be h100-pcie"));
  }
}

// Prints as `rocm-smi --showtopo` does: weights before the types of links.
std::string amd_matrix(int count, int island) {
  std::string names = "       ", text = "============ ROCm System Management Interface ======\n";
  for (int i = 0; i < count; ++i) names += "GPU" + std::to_string(i) + "         ";
  for (const bool types : {false, true}) {
    text += types ? "====== Link Type between two GPUs ======\n" : "=== Weight between two GPUs\n";
    text += names + "\n";
    for (int i = 0; i < count; ++i) {
      text += "GPU" + std::to_string(i) + "   ";
      for (int j = 0; j < count; ++j) {
        const char* link = i / island == j / island ? "XGMI" : "PCIE";
        text += (i == j ? "0" : types ? link : "15") + std::string("         ");
      }
      text += "\n";
    }
    text += "\n";
  }
  return text + "====== Numa Nodes ======\nGPU[0]\t\t: (Topology) Numa Node: 0\n";
}

TEST_F(NcclNode, TheMatrixOfRocmSmiTellsTheLinks) {
  const auto told = [&](const std::string& text, const char* gpu) {
    test::write_text(path(), text);
    return nccl_node(path(), gpu, "");
  };
  const auto box = told(amd_matrix(8, 8), "mi300x");
  EXPECT_EQ(box.gpus, 8);
  EXPECT_NEAR(box.inside.bandwidth, 448e9, 1);
  EXPECT_EQ(box.source, "rocm-smi --showtopo: XGMI joins all GPUs");
  EXPECT_NEAR(told(amd_matrix(4, 4), "mi300x").inside.bandwidth, 192e9, 1);
  const auto islands = told(amd_matrix(8, 4), "mi250x");
  EXPECT_NEAR(islands.inside.bandwidth, 31.5e9, 1);
  EXPECT_TRUE(test::contains(std::string(islands.source), "through processors"));
  EXPECT_EQ(told("AMD Instinct MI300X\n" + amd_matrix(8, 8), "").name, "mi300x");
  EXPECT_TRUE(test::contains(refusal(amd_matrix(8, 8)), "--gpu says which"));
  EXPECT_EQ(refusal(amd_matrix(8, 8), "h100-sxm"),
            "--gpu: h100-sxm is not AMD's, the GPUs of " + path() + " are AMD's");
  const std::string whole = amd_matrix(8, 8);
  EXPECT_TRUE(test::contains(refusal(whole.substr(0, whole.rfind("GPU6 ")), "mi300x"),
                             "expected NCCL's topology"));
}

TEST_F(NcclNode, TheMatrixOfNvidiaSmiTellsTheLinks) {
  const auto told = [&](const std::vector<std::vector<int>>& links, const char* gpu) {
    test::write_text(path(), matrix(links));
    return nccl_node(path(), gpu, "8x400gbit:rdma");
  };
  const auto every = [](int count, int links) {
    return std::vector<std::vector<int>>(static_cast<std::size_t>(count),
                                         std::vector<int>(static_cast<std::size_t>(count), links));
  };
  const auto inside = [](const char* name) { return hardware::find_node(name)->inside.bandwidth; };
  // Behind switches each pair has all links of a GPU.
  EXPECT_DOUBLE_EQ(told(every(8, 18), "h100-sxm").inside.bandwidth, inside("dgx-h100"));
  EXPECT_DOUBLE_EQ(told(every(8, 12), "a100-sxm-80gb").inside.bandwidth, inside("dgx-a100"));
  // Four A100 without one: four links to each of three others are the same twelve.
  EXPECT_DOUBLE_EQ(told(every(4, 4), "a100-sxm-80gb").inside.bandwidth, inside("dgx-a100"));
  const std::vector<std::vector<int>> cube{{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                                           {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                                           {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                           {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
  EXPECT_DOUBLE_EQ(told(cube, "v100-sxm").inside.bandwidth, inside("dgx-1"));
  EXPECT_EQ(told(every(4, 0), "l40s").gpus, 4);
  EXPECT_TRUE(test::contains(refusal(matrix(every(8, 18))), "--gpu says which"));
  const std::string whole = matrix(every(8, 18));
  EXPECT_TRUE(test::contains(refusal(whole.substr(0, whole.find("GPU6\t")), "h100-sxm"),
                             "expected NCCL's topology"));
}

// Lines as NCCL 2.27 prints them on each rank, with NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH.
TEST_F(NcclNode, LinesOfNcclsLogTellIt) {
  std::string text = "# nccl-tests\n";
  for (int rank = 0; rank < 8; ++rank) {
    const std::string head =
        "n1:70" + std::to_string(rank) + ":70 [" + std::to_string(rank) + "] NCCL INFO ";
    for (int port = 0; port < 8; ++port) {
      text += head + "NET/IB : Made virtual device [" + std::to_string(port) + "] name=mlx5_" +
              std::to_string(port) + " speed=400000 ndevs=1\n";
    }
    text += head + "comm 0x1 rank " + std::to_string(rank) +
            " nRanks 16 nNodes 2 localRanks 8 localRank " + std::to_string(rank) + " MNNVL 0\n";
    text += head + "=== System : maxBw 48.0 totalBw 370.8 ===\n" + head + "CPU/0-0 (1/1/2)\n";
    for (int gpu = 0; gpu < 8; ++gpu) {
      text += head + "              + PCI[48.0] - GPU/0-" + std::to_string(gpu) + "b000 (" +
              std::to_string(gpu) + ")\n" + head +
              "                            + NVL[370.8] - NVS/0\n";
    }
    std::string other = head;
    other[1] = '2';
    text += other + "              + PCI[48.0] - GPU/0-ff000 (8)\n";
  }
  test::write_text(path(), text);
  const auto node = nccl_node(path(), "h100-sxm", "");
  const hardware::KnownNode& known = *hardware::find_node("dgx-h100");
  EXPECT_EQ(node.gpus, 8);
  EXPECT_DOUBLE_EQ(node.inside.bandwidth, known.inside.bandwidth);
  EXPECT_EQ(std::tie(node.outside.count, node.outside.bandwidth, node.outside.fabric),
            std::tie(known.outside.count, known.outside.bandwidth, known.outside.fabric));
  // Without a graph the communicators tell the GPUs, and the device what joins them.
  std::string plain;
  for (int rank = 0; rank < 4; ++rank) {
    plain +=
        "n1:7:7 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 4 cudaDev 0 nvmlDev 0 "
        "busId " +
        std::to_string(rank) + "b000 commId 0x2 - Init COMPLETE\n";
  }
  test::write_text(path(), plain);
  EXPECT_EQ(nccl_node(path(), "l40s", "").gpus, 4);
  EXPECT_TRUE(test::contains(refusal(plain), "--gpu says which"));
}

// `init` takes the file for the name of a node.
TEST_F(NcclNode, InitTakesTheFile) {
  const std::string box =
      cpu("GenuineIntel", gpus(100, Links(8, {{-1, 18}}), "") + nets(8, "mlx5_", 400000, 1));
  read(box, "b200");
  InitOptions options{.model = "gpt2_medium", .node = path(), .nodes = 2, .gpu = "b200"};
  const Json cluster = init_scenario(options).scenario["cluster"];
  EXPECT_EQ(
      (Json{cluster["gpus_per_node"], cluster["intra"]["bandwidth_gbps"], cluster["inter"]["nics"],
            cluster["inter"]["bandwidth_gbps"], cluster["fabric"], cluster["name"]}),
      Json::parse(R"([8, 7200, 8, 400, "rdma", "2 x 8 b200"])"));
  read(cpu("GenuineIntel", gpus(100, Links(8, {{-1, 18}}), "")), "b200");
  EXPECT_THROW(init_scenario(options), InputError);
  options.nodes = 1;
  EXPECT_FALSE(init_scenario(options).scenario["cluster"].contains("inter"));
}

}  // namespace
}  // namespace syncline::job
