#include "formats/input/read_cluster.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "catalogue/hardware/device.h"
#include "core/base/error.h"
#include "core/base/statistics.h"
#include "core/cluster.h"
#include "core/collective/library.h"
#include "core/collective/nccl.h"
#include "core/cost/cost_model_provider.h"
#include "core/fabric/kinds.h"
#include "core/job/overlap.h"
#include "formats/input/cost_model_json.h"
#include "formats/input/hardware_json.h"
#include "formats/input/read_fabric.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"

namespace syncline::input {
namespace {

constexpr std::int64_t kMaxRanks = 1 << 20;

// Returns the bandwidth of one TCP connection at this share of lost packets: CUBIC's window per
// round trip, or Reno's if larger. Sources: Mathis et al. 1997, RFC 9438 section 5.
BytesPerSecond rate_with_loss(double loss, Seconds latency) {
  constexpr double kSegment = 1448;  // bytes of payload in a packet of Ethernet's
  const Seconds round_trip = 2 * latency;
  const double packets = std::max(std::sqrt(1.5 / loss), 1.054 * std::pow(round_trip / loss, 0.75));
  return packets * kSegment / round_trip;
}

// Reads a tier. `ports` send in a round, and all wait for the latest message.
Tier read_tier(Reader& reader, std::string name, int span, int ports) {
  Tier tier;
  tier.name = std::move(name);
  tier.span = span;
  tier.efficiency = reader.number_or("efficiency", 1, {0, 1, true});
  tier.measured = reader.boolean_or("measured", false);
  tier.nics = static_cast<int>(reader.integer_or("nics", 1, 1, 1024));
  tier.latency = reader.number("latency_us", {0, 1e9}) * kMicrosecond;
  if (const double jitter = reader.number_or("jitter_us", 0, {0, 1e9}); jitter > 0) {
    tier.latency += jitter * kMicrosecond * largest_of_normals(ports).mean;
  }
  const double rated = reader.number("bandwidth_gbps", {0, 1e7, true});
  tier.bandwidth = rated * kGigabitPerSecond * tier.efficiency * tier.nics;
  if (reader.has("upload_gbps")) {
    tier.upload_ratio = reader.number("upload_gbps", {0, 1e7, true}) / rated;
  }
  if (reader.has("flow_cap_gbps")) {
    tier.flow_cap = reader.number("flow_cap_gbps", {0, 1e7, true}) * kGigabitPerSecond;
  }
  if (const double loss = reader.number_or("packet_loss", 0, {0, 0.5}); loss > 0) {
    if (tier.latency == 0)
      reader.fail("packet_loss", "a lost packet costs by latency_us, which is 0");
    tier.flow_cap = std::min(tier.flow_cap, rate_with_loss(loss, tier.latency));
  }
  tier.oversubscription = reader.number_or("oversubscription", 1, {1, 1e6});
  return tier;
}

// Reads [[bytes, microseconds], ...], rising in both; empty: not given.
cost::StepCurve read_steps(Reader& reader, const Tier& tier) {
  cost::StepCurve curve;
  if (!reader.has("measured_steps_us")) return curve;
  const Json& points = reader.array("measured_steps_us");
  for (const auto& point : points) {
    const bool pair =
        point.is_array() && point.size() == 2 && point[0].is_number() && point[1].is_number();
    cost::StepPoint step;
    if (pair) step = {point[0].get<double>(), point[1].get<double>() * kMicrosecond};
    const bool rises =
        curve.empty() || (step.bytes > curve.back().bytes && step.seconds > curve.back().seconds);
    if (!pair || step.bytes < 0 || step.seconds <= 0 || !rises) {
      reader.fail("measured_steps_us",
                  "point " + std::to_string(curve.size()) +
                      ": expected [bytes, microseconds], each above those of the point before");
    }
    curve.push_back(step);
  }
  if (curve.size() < 2) reader.fail("measured_steps_us", "expected at least two points");
  // The measured steps would override a changed bandwidth, for example in a sweep.
  const double ratio = cost::slope_of(curve) / tier.bandwidth;
  constexpr double kNear = 1.5;
  if (ratio > kNear || ratio < 1 / kNear) {
    reader.fail("measured_steps_us", "they speak of a link of " +
                                         std::to_string(cost::slope_of(curve) / kGigabitPerSecond) +
                                         " Gbit/s, bandwidth_gbps of " +
                                         std::to_string(tier.bandwidth / kGigabitPerSecond) +
                                         "; leave them out to ask about another link");
  }
  return curve;
}

constexpr double kNotGiven = -1;

// Reads the given keys; fill_in_overlap adds the rest.
Overlap read_overlap(Reader& reader) {
  Overlap overlap{kNotGiven, kNotGiven, kNotGiven};
  const auto read = [&](const char* key, double& value, double most, double unit) {
    if (!reader.has(key)) return;
    value = reader.number(key, {0, most}) * unit;
    overlap.given = true;
  };
  read("overlap_slowdown", overlap.slowdown, 100, 1);
  read("overlap_collective_slowdown", overlap.collective_slowdown, 100, 1);
  read("overlap_delay_us", overlap.delay, 1e9, kMicrosecond);
  overlap.spread = reader.number_or("overlap_spread", Overlap::kMeasuredSpread, {0, 10});
  return overlap;
}

// Fills in assumptions for missing keys, so that writing one of the values down has no effect. A
// collective slows in proportion to computation, and a smaller share of the processor does not
// delay it more.
void fill_in_overlap(Cluster& cluster) {
  const Overlap likely = overlap_assumed(cluster).likely;
  Overlap& overlap = cluster.device.overlap;
  const double spread = overlap.spread;
  if (!overlap.given) {
    overlap = likely;
    overlap.spread = spread;
    return;
  }
  if (overlap.slowdown == kNotGiven) overlap.slowdown = likely.slowdown;
  const double times = likely.slowdown > 0 ? overlap.slowdown / likely.slowdown : 1;
  if (overlap.collective_slowdown == kNotGiven) {
    const bool alike = likely.collective_slowdown == likely.slowdown;
    overlap.collective_slowdown = alike ? overlap.slowdown : times * likely.collective_slowdown;
  }
  if (overlap.delay == kNotGiven) overlap.delay = std::min(1.0, times) * likely.delay;
}

// Sets properties that no figure shows. If a base is given, the device's name is only a label.
void identify(Device& device, const std::string& base) {
  const hardware::KnownDevice* known =
      base.empty() ? hardware::recognise_device(device.name) : hardware::find_device(base);
  if (known == nullptr) return;
  device.bf16 = known->bf16;
  if (!base.empty()) device.compute_capability = known->compute_capability;
}

Device read_device(Reader reader) {
  Device device;
  device.name = reader.text_or("name", "");
  const double efficiency = reader.number_or("efficiency", 1, {0, 1, true});
  for (const DeviceFigure& row : device_figures()) {
    device.*row.figure = reader.number_or(row.key, 0, {0, row.most}) * row.unit;
  }
  device.flops *= efficiency;
  device.half_flops *= efficiency;
  device.overlap = read_overlap(reader);
  identify(device, reader.text_or("base", ""));
  reader.finish();
  return device;
}

NcclHints read_nccl(Reader reader) {
  NcclHints hints;
  const std::string cpu = reader.word_or("cpu", "intel", {"intel", "amd", "other"});
  hints.cpu = cpu == "amd"     ? NcclHints::Cpu::kAmd
              : cpu == "other" ? NcclHints::Cpu::kOther
                               : NcclHints::Cpu::kIntel;
  hints.compute_capability = static_cast<int>(reader.integer_or("compute_capability", 0, 50, 999));
  if (reader.has("nvlink")) hints.nvlink = reader.boolean_or("nvlink", false);
  if (reader.has("nvswitch")) hints.nvswitch = reader.boolean_or("nvswitch", false);
  if (reader.has("gpu_direct")) hints.gpu_direct = reader.boolean_or("gpu_direct", false);
  hints.channels = static_cast<int>(reader.integer_or("channels", 0, 1, 32));
  hints.channel_intra =
      reader.number_or("channel_intra_gbytes_per_s", 0, {0, 1e6, true}) * kGigabytePerSecond;
  hints.channel_inter =
      reader.number_or("channel_inter_gbytes_per_s", 0, {0, 1e6, true}) * kGigabytePerSecond;
  hints.balanced_tree = reader.word_or("tree", "balanced", {"balanced", "plain"}) == "balanced";
  reader.finish();
  return hints;
}

Jitter read_jitter(Reader reader) {
  Jitter jitter;
  const std::string word =
      reader.word_or("distribution", "normal", {"none", "normal", "exponential"});
  jitter.kind = word == "none"     ? Jitter::Kind::kNone
                : word == "normal" ? Jitter::Kind::kNormal
                                   : Jitter::Kind::kExponential;
  if (jitter.kind != Jitter::Kind::kNone && !reader.has("relative")) {
    jitter.guessed = true;  // its amount is guessed
    reader.boolean_or("guessed", false);
    reader.finish();
    return jitter;
  }
  // Beyond a third of the mean a normal factor would sometimes be negative.
  jitter.relative =
      reader.number_or("relative", 0, {0, jitter.kind == Jitter::Kind::kNormal ? 0.33 : 10.0});
  if (jitter.relative == 0) jitter.kind = Jitter::Kind::kNone;
  jitter.guessed = reader.boolean_or("guessed", false);
  reader.finish();
  return jitter;
}

// Levels of links as they are read. A level that joins a single unit has no traffic: it is read,
// checked and dropped, so that a sweep may include one node or one GPU per node.
struct Levels {
  int ranks = 0;
  std::vector<Tier> tiers;
  std::vector<cost::StepCurve> curves;  // by tier
  std::optional<Tier> inter;            // as it was read

  void read(Reader& reader, const std::string& name, int span, bool joins) {
    const int below = tiers.empty() ? 1 : tiers.back().span;
    Tier tier = read_tier(reader, name, span, std::max(1, ranks / below));
    cost::StepCurve steps = read_steps(reader, tier);
    reader.finish();
    if (name == "inter") inter = tier;
    if (!joins) return;
    tiers.push_back(std::move(tier));
    curves.push_back(std::move(steps));
  }
};

// Reads the nodes below one switch of `inter` and of each further level.
std::vector<int> read_units(Reader& reader, std::vector<Reader>& upper, int all_nodes) {
  constexpr std::size_t kMaxUpperTiers = kMaxTiers - 2;
  if (upper.size() > kMaxUpperTiers) {
    reader.fail("upper", "found " + std::to_string(upper.size()) + " levels, expected at most " +
                             std::to_string(kMaxUpperTiers));
  }
  std::vector<int> units;
  int below = 1;
  for (auto& level : upper) {
    const int nodes = static_cast<int>(level.integer("nodes_per_group", 1, kMaxRanks));
    if (nodes % below != 0 || all_nodes % nodes != 0) {
      level.fail("nodes_per_group", "found " + std::to_string(nodes) + ", expected a multiple of " +
                                        std::to_string(below) + " that divides the " +
                                        std::to_string(all_nodes) + " nodes");
    }
    units.push_back(nodes);
    below = nodes;
  }
  units.push_back(all_nodes);
  return units;
}

// Requires a level that joins several units; other known level keys are no misspelling of it.
void require_level(Reader& reader, const char* key, int units, const char* noun) {
  for (const char* known : {"intra", "inter", "upper"}) reader.has(known);
  try {
    reader.require(key);
  } catch (const InputError& error) {
    throw InputError(error.what() + (": " + std::to_string(units)) + " " + noun + " need '" + key +
                     "', the links between them (latency_us, bandwidth_gbps)");
  }
}

Levels read_levels(Reader& reader, int nodes, int gpus_per_node) {
  Levels levels;
  levels.ranks = nodes * gpus_per_node;
  if (gpus_per_node > 1) require_level(reader, "intra", gpus_per_node, "GPUs per node");
  if (reader.has("intra")) {
    Reader intra = reader.object("intra");
    levels.read(intra, "intra", gpus_per_node, gpus_per_node > 1);
  }
  std::vector<Reader> upper = reader.objects("upper");
  const std::vector<int> units = read_units(reader, upper, nodes);
  if (nodes > 1) require_level(reader, "inter", nodes, "nodes");
  if (reader.has("inter")) {
    Reader inter = reader.object("inter");
    levels.read(inter, "inter", units[0] * gpus_per_node, units[0] > 1);
  }
  for (std::size_t i = 0; i < upper.size(); ++i) {
    const std::string name = upper[i].text("name");
    levels.read(upper[i], name, units[i + 1] * gpus_per_node, units[i + 1] > units[i]);
  }
  return levels;
}

// Reads the measured costs of collectives, by step or as a whole.
void read_cost_models(Reader& reader, const std::vector<cost::StepCurve>& curves,
                      Cluster& cluster) {
  if (std::any_of(curves.begin(), curves.end(), [](const auto& c) { return !c.empty(); })) {
    cluster.cost_model = cost::step_cost_model(cluster, curves);
  }
  if (reader.has("calibration")) {
    cluster.cost_model =
        cost::collective_cost_model(read_cost_model(reader.object("calibration")),
                                    cluster.gpus_per_node, cluster.collective_overhead);
  }
}

// Reads the network: a word is its kind; an object describes its links, with the word as
// "transport".
Fabric read_fabric(Reader& reader, const char* key) {
  std::vector<std::string> names;
  for (const auto& [word, fabric] : fabric_words()) names.push_back(word);
  const std::string named = reader.word_or(key, "", names);
  for (const auto& [word, fabric] : fabric_words()) {
    if (word == named) return fabric;
  }
  return Fabric::kUnknown;
}

void read_fabric(Reader& reader, const std::optional<Tier>& inter, Cluster& cluster) {
  const Json* given = reader.find("fabric");
  if (given == nullptr || !given->is_object()) {
    cluster.fabric = read_fabric(reader, "fabric");
    return;
  }
  Reader object = reader.object("fabric");
  cluster.fabric = read_fabric(object, "transport");
  if (reader.has("upper")) {
    reader.fail("fabric", "as an object it says what is above the nodes: leave out 'upper'");
  }
  if (!inter)
    reader.fail("fabric", "it joins nodes by their ports: 'inter' says how fast those are");
  if (inter->oversubscription != 1) {
    reader.fail("inter.oversubscription", "a fabric's switches are narrowed by its own links");
  }
  cluster.topology = read_topology(object, cluster, *inter);
  // One node has no traffic on it; a sweep may include one node.
  if (cluster.nodes == 1) cluster.topology = nullptr;
  for (const auto& known : fabric::known_fabrics()) {
    const bool named = object.json().contains("name") && object.json()["name"] == known.name;
    // A cluster that was written and is read again already has it.
    if (!named || cluster.source.find(known.source) != std::string::npos) continue;
    cluster.source += (cluster.source.empty() ? "" : "; ") + std::string(known.source);
  }
}

std::vector<double> read_speeds(Reader& reader, int nodes) {
  std::vector<double> speeds;
  if (!reader.has("speeds")) return speeds;
  for (const Json& each : reader.array("speeds")) {
    const std::string place = reader.place_of("speeds") + "[" + std::to_string(speeds.size()) + "]";
    speeds.push_back(checked_number(each, {0, 1000, true}, reader.file(), place));
  }
  if (nodes == 1) return {};  // a sweep may include one node
  if (speeds.empty() || nodes % static_cast<int>(speeds.size()) != 0) {
    reader.fail("speeds", "found " + std::to_string(speeds.size()) +
                              ", expected a divisor of the " + std::to_string(nodes) + " nodes");
  }
  return speeds;
}

// Returns the library: whole collectives were measured by nccl-tests, steps by ranks over Gloo.
Library read_library(Reader& reader, const Cluster& cluster) {
  const bool steps = cluster.cost_model && !reader.has("calibration");
  const Library likely = reader.has("calibration") ? Library::kNccl
                         : steps                   ? Library::kGloo
                                                   : collective::likely_library(cluster);
  if (!reader.has("library")) return likely;
  const std::string word = reader.word_or("library", "", {"nccl", "gloo", "links"});
  return word == "nccl" ? Library::kNccl : word == "gloo" ? Library::kGloo : Library::kLinks;
}

}  // namespace

Cluster read_cluster(Reader named) {
  const Json whole = with_known_hardware(named);
  Reader reader(whole, named.file(), named.place(), named.mistakes());
  Cluster cluster;
  reader.text_or("$schema", "");
  reader.has("node");  // filled in above
  cluster.name = reader.text("name");
  cluster.source = reader.text_or("source", "");
  reader.text_or("about", "");
  cluster.nodes = static_cast<int>(reader.integer("nodes", 1, kMaxRanks));
  cluster.gpus_per_node = static_cast<int>(reader.integer("gpus_per_node", 1, 1024));
  if (std::int64_t{cluster.nodes} * cluster.gpus_per_node > kMaxRanks) {
    reader.fail("nodes", "more than 2^20 GPUs");
  }

  Levels levels = read_levels(reader, cluster.nodes, cluster.gpus_per_node);
  cluster.tiers = std::move(levels.tiers);
  cluster.collective_overhead =
      reader.number_or("collective_overhead_us", 0, {0, 1e9}) * kMicrosecond;
  read_fabric(reader, levels.inter, cluster);
  if (reader.has("device")) cluster.device = read_device(reader.object("device"));
  if (reader.has("jitter")) {
    cluster.jitter = read_jitter(reader.object("jitter"));
  } else {
    cluster.jitter.guessed = true;
  }
  cluster.speeds = read_speeds(reader, cluster.nodes);
  read_cost_models(reader, levels.curves, cluster);
  if (reader.has("nccl")) cluster.nccl = read_nccl(reader.object("nccl"));
  cluster.library = read_library(reader, cluster);
  cluster.library_given = reader.has("library");
  cluster.nccl = collective::beyond_guesses(cluster);
  fill_in_overlap(cluster);
  reader.finish();
  return cluster;
}

}  // namespace syncline::input
