#include "formats/dialect/dialects.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/index.h"
#include "core/plan/fusion.h"
#include "formats/dialect/changes.h"
#include "formats/dialect/ddp_buckets.h"
#include "formats/dialect/framework_keys.h"
#include "formats/dialect/schemes.h"
#include "formats/json/reader.h"

namespace syncline::dialect {
namespace {

// FSDPModule.set_requires_all_reduce, called with this in all micro-batches but the last.
constexpr const char* kAcross = "set_requires_all_reduce";

using Path = std::vector<std::string>;

Path path_of(const std::string& name) {
  Path path;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    path.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return path;
}

// Returns the paths of all parameters.
std::vector<Path> paths_of(const Workload& workload) {
  std::vector<Path> paths;
  for (const Tensor& tensor : workload.tensors) paths.push_back(path_of(tensor.name));
  return paths;
}

// Returns true if a module of the parameter's path, other than the root, matches the pattern.
bool holds(const Path& pattern, const Path& parameter) {
  if (pattern.empty() || parameter.size() <= pattern.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != "*" && pattern[i] != parameter[i]) return false;
  }
  return true;
}

// Parameters that are sharded and gathered as one: those of a module that is wrapped, or of several
// modules that are wrapped together, or the root's, which no other unit has.
struct Unit {
  std::vector<int> tensors;
  bool stays = false;  // gathered from the forward pass to the backward pass
  // First and last gradient below its modules, units inside included: the unit is gathered before
  // the backward pass reaches the first, and summed after the last.
  int first = 0;
  int last = 0;
  std::size_t depth = 0;  // of its modules, 0: the root
};

std::string text_of(const Path& path) {
  std::string text;
  for (const auto& part : path) text += (text.empty() ? "" : ".") + part;
  return text;
}

// Returns true for a module that its list numbers: "12", "encoder_layer_12".
bool is_number(const std::string& part) { return plan::layer_number("m." + part + ".w") >= 0; }

// Returns one pattern for all modules that differ only by a number.
Json in_patterns(const std::vector<Path>& modules) {
  Json patterns = Json::array();
  for (Path module : modules) {
    for (auto& part : module) {
      if (is_number(part)) part = "*";
    }
    const Json pattern = text_of(module);
    if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) {
      patterns.push_back(pattern);
    }
  }
  return patterns;
}

// Finds each numbered module that holds a gradient, as people wrap a model's layers.
std::vector<Path> layers_of(const Workload& workload) {
  std::vector<Path> layers;
  for (const Path& path : paths_of(workload)) {
    const auto number = std::find_if(path.begin(), path.end(), is_number);
    if (number == path.end() || number + 1 == path.end()) continue;
    layers.emplace_back(path.begin(), number + 1);
  }
  return layers;
}

// Reads a list of patterns. An entry that is a list itself names modules of one unit.
std::vector<std::vector<Path>> read_patterns(Reader& config, const char* key,
                                             const Workload& workload) {
  Json entries = Json::array();
  if (config.has(key) && config.json().at(key) == "layers") {
    config.find(key);
    entries = in_patterns(layers_of(workload));
    if (entries.empty()) config.fail(key, "is 'layers', and no parameter is in a numbered module");
  } else if (config.has(key)) {
    entries = config.array(key);
  }
  std::vector<std::vector<Path>> patterns;
  for (std::size_t p = 0; p < entries.size(); ++p) {
    const Json list = entries[p].is_array() ? entries[p] : Json::array({entries[p]});
    std::vector<Path>& together = patterns.emplace_back();
    for (const Json& each : list) {
      together.push_back(each.is_string() ? path_of(each.get<std::string>()) : Path{});
      if (together.back().empty()) {
        config.fail(key, config.place_of(key) + "[" + std::to_string(p) +
                             "] is no name of a module, nor a list of them");
      }
    }
    if (together.empty()) config.fail(key, "names no module in entry " + std::to_string(p));
  }
  return patterns;
}

// Orders units by the sums of their gradients: a unit inside another is summed first.
// gathers_before orders them by the gathering of their parameters: a unit inside is gathered last.
bool sums_before(const Unit& a, const Unit& b) {
  return std::tuple(a.last, -a.first, -static_cast<int>(a.depth)) <
         std::tuple(b.last, -b.first, -static_cast<int>(b.depth));
}

bool gathers_before(const Unit& a, const Unit& b) {
  return std::tuple(a.first, -a.last, a.depth) < std::tuple(b.first, -b.last, b.depth);
}

// Sets the first and the last gradient below the modules of a unit, and their depth.
void find_reach(const std::set<Path>& modules, const Workload& workload,
                const std::vector<Path>& paths, Unit& unit) {
  unit.first = unit.tensors.front();
  unit.last = unit.tensors.back();
  unit.depth = modules.begin()->size();
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    const auto above = [&](const Path& module) { return holds(module, paths[t]); };
    if (workload.tensors[t].sparse) continue;
    if (unit.depth > 0 && std::ranges::none_of(modules, above)) continue;
    unit.first = std::min(unit.first, static_cast<int>(t));
    unit.last = std::max(unit.last, static_cast<int>(t));
  }
}

// Returns units in the order of their completion. A parameter belongs to the innermost wrapped
// module. Units that `not_resharded` names keep their parameters for the backward pass, and so does
// the root if it stays.
std::vector<Unit> units_of(Reader& config, bool root_stays, const Workload& workload,
                           Reading& reading) {
  const auto patterns = read_patterns(config, "units", workload);
  const std::vector<Path> paths = paths_of(workload);
  std::vector<Path> module(workload.tensors.size());
  std::vector<Path> unit_of(workload.tensors.size());
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    reading.unheld.emplace("units", p);
    for (const Path& pattern : patterns[p]) {
      for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
        if (!holds(pattern, paths[t])) continue;
        reading.unheld.erase({"units", p});
        if (pattern.size() <= module[t].size()) continue;
        const auto end = paths[t].begin() + static_cast<std::ptrdiff_t>(pattern.size());
        Path own(paths[t].begin(), end);
        unit_of[t] = patterns[p].size() > 1 ? Path{std::to_string(p)} : own;
        module[t] = std::move(own);
      }
    }
  }
  std::map<Path, Unit> units;
  std::map<Path, std::set<Path>> modules;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    if (workload.tensors[t].sparse) continue;
    Unit& unit = units[unit_of[t]];
    unit.tensors.push_back(static_cast<int>(t));
    unit.stays = root_stays && module[t].empty();
    modules[unit_of[t]].insert(module[t]);
  }
  const auto kept = read_patterns(config, "not_resharded", workload);
  for (std::size_t p = 0; p < kept.size(); ++p) {
    reading.unheld.emplace("not_resharded", p);
    for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
      const auto unit = units.find(unit_of[t]);
      const auto named = [&](const Path& pattern) { return holds(pattern, paths[t]); };
      if (unit == units.end() || std::ranges::none_of(kept[p], named)) continue;
      unit->second.stays = true;
      reading.unheld.erase({"not_resharded", p});
    }
  }
  std::vector<Unit> list;
  for (auto& [name, unit] : units) {
    find_reach(modules[name], workload, paths, unit);
    list.push_back(std::move(unit));
  }
  std::ranges::sort(list, sums_before);
  return list;
}

// Sets the parameters' buckets; those that stay gathered come first.
void keep_units(std::vector<Unit> units, Strategy& strategy) {
  if (strategy.traits.buckets.in_turn) std::ranges::sort(units, gathers_before);
  strategy.gather_groups.clear();
  for (const bool stays : {true, false}) {
    for (const Unit& unit : units) {
      if (unit.stays == stays) strategy.gather_groups.push_back(unit.tensors);
    }
  }
  strategy.traits.kept_groups = static_cast<int>(std::ranges::count(units, true, &Unit::stays));
}

// Checks that units are of one format, and parameters have a dimension: torch shards a unit as one.
// FSDP1 without use_orig_params (`aligned`) trains all of a unit, or nothing.
void check_units(Reader& config, const std::vector<std::vector<int>>& units, std::int64_t version,
                 bool aligned, const Workload& workload) {
  for (const auto& unit : units) {
    const auto frozen = [&](int t) { return workload.tensors[static_cast<std::size_t>(t)].frozen; };
    const auto first_frozen = std::ranges::find_if(unit, frozen);
    const bool mixed = first_frozen != unit.end() && !std::ranges::all_of(unit, frozen);
    if (version == 1 && !aligned && mixed) {
      config.fail("units",
                  "a unit has gradients and " +
                      workload.tensors[static_cast<std::size_t>(*first_frozen)].name +
                      ", which is frozen; torch refuses that (Must flatten tensors with "
                      "uniform `requires_grad` when `use_orig_params=False`): wrap what is "
                      "trained apart, or set use_orig_params");
    }
    const Tensor& first = workload.tensors[static_cast<std::size_t>(unit.front())];
    for (const int t : unit) {
      const Tensor& tensor = workload.tensors[static_cast<std::size_t>(t)];
      if (tensor.dtype != first.dtype) {
        config.fail("units", "a unit holds " + first.name + " in " + to_string(first.dtype) +
                                 " and " + tensor.name + " in " + to_string(tensor.dtype) +
                                 ", which torch refuses (" +
                                 (version == 1 ? "Must flatten tensors with uniform dtype"
                                               : "FSDP expects uniform original parameter dtype") +
                                 "): wrap them apart, or give both the format that travels");
      }
      if (version == 2 && tensor.shape.empty()) {
        config.fail("units", "fully_shard doesn't support scalar parameters: " + tensor.name +
                                 " has no dimension to shard");
      }
    }
  }
}

// Notes the parameter that costs most by its padding, if that counts: padding is sent too.
void note_padding(const Reading& reading, const Workload& workload,
                  std::vector<std::string>& notes) {
  Bytes all = 0;
  Bytes most = 0;
  const Tensor* named = nullptr;
  const std::int64_t ranks = reading.strategy.traits.buckets.pad_rows;
  for (const Tensor& tensor : workload.tensors) {
    const Bytes more =
        plan::padded_bytes(tensor, reading.strategy.fusion, reading.strategy.traits.buckets) -
        tensor.bytes();
    all += more;
    if (more > most) named = &tensor;
    most = std::max(most, more);
  }
  constexpr Bytes kCounts = 50;  // padding above 1/50 of the gradients counts
  if (named == nullptr || all * kCounts < gradient_bytes(workload)) return;
  const std::int64_t rows = named->shape.front();
  notes.push_back("FSDP2 pads the first dimension of each parameter to a multiple of the " +
                  std::to_string(ranks) + " ranks: " + named->name + " of " + std::to_string(rows) +
                  (rows == 1 ? " row" : " rows") + " travels as " +
                  std::to_string((rows + ranks - 1) / ranks * ranks));
}

bool is_hybrid(const std::string& sharding) { return sharding.find("HYBRID") != sharding.npos; }

// Reads FSDP1's sharding_strategy.
std::string read_sharding(Reader& config, std::int64_t version) {
  const std::string sharding = config.word_or(
      "sharding_strategy", "FULL_SHARD",
      {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"});
  if (version == 2 && config.has("sharding_strategy")) {
    config.fail("sharding_strategy",
                "is FSDP1's, which \"version\": 1 says: FSDP2 has reshard_after_forward and mesh");
  }
  return sharding;
}

// Returns the sizes of a mesh with the ranks that are left in place of -1. Fails if they do not
// fill it.
std::vector<std::int64_t> filled_mesh(Reader& config, const char* key,
                                      std::vector<std::int64_t> sizes, const Cluster& cluster) {
  std::int64_t ranks = 1;
  for (const std::int64_t size : sizes) ranks *= size == kOthers ? 1 : size;
  const auto others = std::ranges::count(sizes, kOthers);
  if (others > 1) config.fail(key, "has -1, for all other ranks, twice");
  if (others == 1 && cluster.ranks() % ranks != 0) {
    config.fail(key, "has groups of " + std::to_string(ranks) +
                         " ranks, which do not divide the cluster's " +
                         std::to_string(cluster.ranks()));
  }
  if (others == 0 && ranks != cluster.ranks()) {
    config.fail(key, "has " + std::to_string(ranks) + " ranks, the cluster has " +
                         std::to_string(cluster.ranks()) +
                         "; -1 in place of a size follows the cluster");
  }
  std::ranges::replace(sizes, kOthers, cluster.ranks() / ranks);
  return sizes;
}

// Reads the sizes of a device mesh: [shard], or [replicate, shard]. -1: all other ranks, as in
// torchtitan's degrees. Empty: none is given.
std::vector<std::int64_t> read_mesh(Reader& config, const char* key, const Cluster& cluster) {
  const Json* value = config.find(key);
  if (value == nullptr || value->is_null()) return {};
  const Json& array = config.array(key);
  if (array.empty() || array.size() > 2) {
    config.fail(key, "expected a 1D or 2D mesh: [ranks], or [replicas, ranks of a shard group]");
  }
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const std::string place = config.place_of(key) + "[" + std::to_string(i) + "]";
    const bool size = array[i].is_number_integer() && array[i] >= 1 && array[i] <= cluster.ranks();
    if (!size && array[i] != kOthers) {
      config.fail(key, place + " is no number of ranks from 1 to " +
                           std::to_string(cluster.ranks()) + ", nor -1 for all others");
    }
    sizes.push_back(array[i].get<std::int64_t>());
  }
  return filled_mesh(config, key, std::move(sizes), cluster);
}

// Ranks that share out one copy of the parameters; further ones hold replicas.
int read_shards(Reader& config, std::int64_t version, const std::string& sharding,
                const Cluster& cluster) {
  const char* key = version == 1 ? "device_mesh" : "mesh";
  const char* other = version == 1 ? "mesh" : "device_mesh";
  if (config.has(other)) {
    config.fail(other, std::string(version == 1 ? "is FSDP2's: FSDP1" : "is FSDP1's: FSDP2") +
                           " has " + key);
  }
  const auto mesh = read_mesh(config, key, cluster);
  const bool hybrid = is_hybrid(sharding);
  if (version == 1 && !mesh.empty() && hybrid != (mesh.size() == 2)) {
    config.fail(key, hybrid ? sharding + " needs a mesh of two dimensions, [replicas, shards]"
                            : "a mesh of two dimensions needs HYBRID_SHARD, not " + sharding);
  }
  int shards = hybrid ? cluster.gpus_per_node : cluster.ranks();
  if (!mesh.empty()) shards = static_cast<int>(mesh.back());
  if (shards == 1 && cluster.ranks() > 1) {
    config.fail(mesh.empty() ? "sharding_strategy" : key,
                "a shard group of one rank is not modelled yet: it shards nothing");
  }
  return shards;
}

// Returns true if the root keeps its parameters for the backward pass: under FSDP1, and under FSDP2
// if torch resets the root's setting, which a given value has prevented since 2.8.
bool root_stays(Reader& config, std::int64_t version, const Workload& workload, Reading& reading) {
  const TorchVersion torch = torch_version(read_torch(config)).value_or(torch_of(workload));
  const char* key = "reshard_after_forward";
  const bool given = config.has(key) && !config.json().at(key).is_null();
  const bool stays = version == 1 || !given || torch < kGivenForRoot;
  note(reading.notes,
       {{!stays && config.json().at(key) == true,
         "since torch 2.8 reshard_after_forward, if it is given, goes for the root too, which is "
         "gathered again at once: without the key it stays gathered"}});
  return stays;
}

// Reads if parameters are given up after the forward pass, and to which smaller group.
void read_reshard(Reader& config, std::int64_t version, const std::string& sharding, int shards,
                  Strategy& strategy) {
  const char* key = "reshard_after_forward";
  if (version == 1) {
    if (config.has(key)) config.fail(key, "is FSDP2's: FSDP1 has sharding_strategy");
    strategy.regather = sharding == "FULL_SHARD" || sharding == "HYBRID_SHARD";
    return;
  }
  const Json* value = config.find(key);
  if (value == nullptr || !value->is_number()) {
    strategy.regather = value == nullptr || value->is_null() || config.boolean_or(key, true);
    return;
  }
  const bool factor = value->is_number_integer() && *value >= 1 && *value <= shards &&
                      shards % value->get<int>() == 0;
  if (!factor) {
    config.fail(key, "as a number it should be a factor of " + std::to_string(shards) +
                         ", the ranks of a shard group, not " + value->dump());
  }
  const int group = value->get<int>();
  strategy.regather = group > 1 || group == shards;
  if (strategy.regather && group != shards) strategy.traits.regather_group = group;
}

void note_groups(const Strategy& strategy, const Cluster& cluster,
                 std::vector<std::string>& notes) {
  const int shards = shard_ranks(strategy, cluster.ranks());
  if (shards < cluster.ranks()) {
    notes.push_back("shards lie in groups of " + std::to_string(shards) + " ranks, and the " +
                    std::to_string(cluster.ranks() / shards) +
                    " groups are replicas of each other: the memory of a rank is that of " +
                    std::to_string(shards) + " ranks");
  }
  if (strategy.traits.regather_group > 0) {
    notes.push_back("parameters are resharded to groups of " +
                    std::to_string(strategy.traits.regather_group) +
                    " ranks after the forward pass, and gathered there for the backward pass");
  }
}

const char* formats_key(std::int64_t version) {
  return version == 1 ? "mixed_precision" : "mp_policy";
}

// Returns the format of the widest gradient.
DType own_format(const Workload& workload) {
  const auto widest = std::ranges::max_element(
      workload.tensors, {}, [](const Tensor& tensor) { return size_of(tensor.dtype); });
  return widest == workload.tensors.end() ? DType::kFp32 : widest->dtype;
}

int own_bytes(const Workload& workload) {
  return static_cast<int>(workload.tensors.empty() ? 0 : size_of(own_format(workload)));
}

// Reads a format by torch's name or its short one; nothing: it is not given.
std::optional<DType> read_format(Reader& formats, const char* key) {
  if (formats.has(key) && formats.json().at(key).is_null()) return std::nullopt;
  const std::string word = formats.word_or(
      key, "none", {"none", "float32", "bfloat16", "float16", "fp32", "bf16", "fp16"});
  if (word == "none") return std::nullopt;
  if (word == "float32" || word == "fp32") return DType::kFp32;
  return word == "bfloat16" || word == "bf16" ? DType::kBf16 : DType::kFp16;
}

// Reads param_dtype, to gather parameters in, and reduce_dtype, to sum gradients in: by default it.
void read_formats(Reader& config, std::int64_t version, const Workload& workload,
                  Strategy& strategy) {
  const char* key = formats_key(version);
  if (!config.has(key)) return;
  Reader formats = config.object(key);
  const int own = own_bytes(workload);
  const std::optional<DType> given = read_format(formats, "param_dtype");
  const int parameter = given ? static_cast<int>(size_of(*given)) : own;
  std::optional<DType> sums = read_format(formats, "reduce_dtype");
  if (!sums) sums = given;
  for (const char* other : {"buffer_dtype", "output_dtype"}) read_format(formats, other);
  for (const char* other :
       {"cast_forward_inputs", "cast_root_forward_inputs", "keep_low_precision_grads"}) {
    formats.boolean_or(other, false);
  }
  formats.finish();
  const int reduced = sums ? static_cast<int>(size_of(*sums)) : own;
  if (parameter != own || reduced < own) strategy.traits.gather_bytes = parameter;
  if (reduced > own) strategy.fusion.sum_format = DType::kFp32;
  if (reduced <= own && sums && *sums != own_format(workload)) strategy.fusion.sum_format = sums;
}

// Shards parameters over `shards` ranks, a unit per bucket.
void share_parameters(const std::vector<Unit>& units, int shards, const Cluster& cluster,
                      bool across_last, Strategy& strategy) {
  // Parameters are gathered in their own format, even if gradients are summed in another. Without
  // buckets of their own, all but the last are gathered again.
  const bool last =
      !units.empty() && units.back().stays && std::ranges::count(units, true, &Unit::stays) == 1;
  const bool apart = strategy.fusion.sum_format || strategy.traits.buckets.in_turn;
  if (apart) strategy.gather_groups = strategy.fusion.groups;
  if (strategy.regather && (apart || !last)) keep_units(units, strategy);
  strategy.exchange = Strategy::Exchange::kSharded;
  strategy.traits.sharded = FrameworkTraits::Sharded::kParameters;
  strategy.cross_step = true;
  if (shards < cluster.ranks()) {
    strategy.hierarchy.form = Hierarchy::Form::kSharded;
    strategy.hierarchy.group_size = shards;
    strategy.traits.across_stream = true;
    strategy.traits.across_last = across_last && strategy.each_micro_batch;
  }
}

void note_one_unit(Reader& config, const Workload& workload, Reading& reading) {
  if (reading.strategy.fusion.groups.size() >= 2) return;
  reading.notes.push_back("everything is one unit: the backward pass can hide nothing");
  const Json layers = in_patterns(layers_of(workload));
  if (!config.has("units") && !layers.empty()) {
    reading.strategy.suspicious.push_back(
        "no units are given, so the model is one unit and nothing overlaps the backward pass: "
        "name the modules that are wrapped (\"units\": " +
        layers.dump() + "), or say that it is one (\"units\": [])");
  }
}

// Sets the padding. FSDP2 pads the rows of a parameter. FSDP1 pads the end of a sharded unit. With
// use_orig_params each parameter begins at 16 bytes in the format of the passes, and units are
// padded even if not sharded (torch 2.6, FlatParamHandle._init_flat_param_and_metadata).
void pad(std::int64_t version, int shards, bool cut, bool aligned, const Workload& workload,
         Strategy& strategy) {
  if (version == 2) {
    strategy.traits.buckets.pad_rows = shards;
    return;
  }
  constexpr int kAlignment = 16;
  const int used =
      strategy.traits.gather_bytes > 0 ? strategy.traits.gather_bytes : own_bytes(workload);
  if (aligned) strategy.traits.buckets.align_elements = kAlignment / used;
  if (cut || aligned) strategy.traits.buckets.pad_elements = shards;
}

// Notes which collectives overlap the passes, and how often parameters travel.
void note_overlap(const Strategy& strategy, int shards, const Cluster& cluster,
                  std::vector<std::string>& notes) {
  const bool gloo = cluster.library == Library::kGloo;
  note(
      notes,
      {{strategy.regather && shards == cluster.ranks() && strategy.traits.regather_group == 0,
        "parameters are gathered twice per step, for the forward and for the backward pass: half "
        "as much again on the wire as DDP"},
       {!strategy.overlap, "over Gloo FSDP waits for each collective: nothing overlaps the passes"},
       {gloo && strategy.overlap,
        "over Gloo FSDP waits for each collective; with several micro-batches that is not "
        "modelled"},
       {strategy.overlap,
        "units' all-gathers for the forward pass follow one another from the update on; torch "
        "asks for them a unit or two early, to save memory"}});
}

const char* offload_key(std::int64_t version) {
  return version == 1 ? "cpu_offload" : "offload_policy";
}

// Returns true if the host's memory holds the shards: FSDP1's cpu_offload, true or with
// offload_params, or FSDP2's CPUOffloadPolicy, by its name or its arguments.
bool offloads(Reader& config, std::int64_t version) {
  const Json* value = config.find(offload_key(version));
  if (value == nullptr || value->is_null() || *value == "OffloadPolicy") return false;
  if (value->is_object()) return version == 2 || value->value("offload_params", Json()) == true;
  return !says_off(*value);
}

Reading read(Reader config, const Workload& workload, const Cluster& cluster, bool) {
  Reading reading;
  Strategy& strategy = reading.strategy;
  const std::int64_t version = config.integer_or("version", 2, 1, 2);
  const std::string sharding = read_sharding(config, version);
  const int shards = read_shards(config, version, sharding, cluster);
  read_formats(config, version, workload, strategy);
  if (offloads(config, version)) strategy.offload = Strategy::Offload::kAll;
  read_reshard(config, version, sharding, shards, strategy);
  if (version == 1 && config.has("not_resharded")) {
    config.fail("not_resharded", "is FSDP2's: FSDP1 has one sharding_strategy for all units");
  }
  if (version == 1 && config.has(kAcross)) config.fail(kAcross, "is FSDP2's");
  const bool across_last = !config.boolean_or(kAcross, true);
  const bool no_sync = config.boolean_or("no_sync", false);
  if (config.word_or("backward_prefetch", "BACKWARD_PRE",
                     {"BACKWARD_PRE", "BACKWARD_POST", "NONE"}) != "BACKWARD_PRE") {
    config.fail("backward_prefetch", "only BACKWARD_PRE, the default, is modelled");
  }
  for (const char* key : {"forward_prefetch", "limit_all_gathers"}) config.boolean_or(key, false);
  const bool aligned = config.boolean_or("use_orig_params", false) && version == 1;
  strategy.fusion.rule = Fusion::Rule::kGroups;
  std::vector<Unit> units =
      units_of(config, root_stays(config, version, workload, reading), workload, reading);
  if (!workload.parallel.whole_job()) refuse_unheld(config, reading);
  for (Unit& unit : units) {
    // In the order of registration, because the end of the last one is not padded.
    if (aligned) std::ranges::reverse(unit.tensors);
    strategy.fusion.groups.push_back(unit.tensors);
  }
  strategy.traits.buckets.in_turn = std::ranges::any_of(units, [&](const Unit& unit) {
    const bool again = strategy.regather && !unit.stays;
    const auto [first, last] = std::ranges::minmax(unit.tensors);
    return unit.last > last || (again && unit.first < first);
  });
  check_units(config, strategy.fusion.groups, version, aligned, workload);
  strategy.traits.buckets.sums_frozen =
      version == 1 && std::ranges::any_of(workload.tensors, &Tensor::frozen);
  finish_keys(config, key_list(version == 1 ? "fsdp1" : "fsdp2"), reading.notes);

  // torch's stages make the sums by hand once the last micro-batch is through.
  const bool staged = workload.parallel.pipeline > 1;
  strategy.each_micro_batch = sums_each_micro_batch(no_sync, workload, reading.notes);
  strategy.after_passes = staged;
  pad(version, shards, sharding != "NO_SHARD", aligned, workload, strategy);
  if (version == 2) note_padding(reading, workload, reading.notes);
  if (sharding == "NO_SHARD") {
    strategy.traits.gather_bytes = 0;
    return reading;
  }
  share_parameters(units, shards, cluster, across_last, strategy);
  strategy.traits.kept_in_step =
      version == 1 && no_sync && !strategy.regather && workload.micro_batches > 1;
  if (cluster.ranks() == 1) return reading;
  // FSDP has no async_op: over Gloo its host waits (torch 2.6, foreach_all_gather, foreach_reduce).
  const bool waits = cluster.library == Library::kGloo && workload.micro_batches == 1;
  strategy.overlap = strategy.cross_step = !waits;
  note_groups(strategy, cluster, reading.notes);
  if (config.has("not_resharded") && !strategy.regather) {
    reading.notes.push_back("not_resharded has no effect: no unit is resharded");
  }
  if (across_last && !strategy.traits.across_last) {
    reading.notes.push_back(
        "set_requires_all_reduce has no effect: it is about replicas that are summed in each "
        "micro-batch");
  }
  note_overlap(strategy, shards, cluster, reading.notes);
  note_one_unit(config, workload, reading);
  return reading;
}

// Returns the innermost module that holds all of these parameters; empty: the root.
Path common_module(const std::vector<int>& tensors, const Workload& workload) {
  Path common;
  for (const int t : tensors) {
    Path path = path_of(workload.tensors[static_cast<std::size_t>(t)].name);
    if (t == tensors.front()) common.assign(path.begin(), path.end() - 1);
    const auto differs = std::mismatch(common.begin(), common.end(), path.begin(), path.end() - 1);
    common.erase(differs.first, common.end());
  }
  return common;
}

// Returns the root's parameters: of the units that are not gathered again, the one with parameters
// from everywhere, or the last. Empty if all units are gathered again, or none.
std::vector<int> root_of(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                         const Workload& workload) {
  if (buckets.empty()) return {};
  // Around all others, so summed last.
  if (!strategy.regather && strategy.traits.buckets.in_turn) return strategy.fusion.groups.back();
  if (!strategy.regather) return {};
  if (strategy.gather_groups.empty()) {
    return std::ranges::max(
               buckets, {},
               [](const plan::Bucket& bucket) { return std::ranges::max(bucket.tensors); })
        .tensors;
  }
  std::vector<int> root;
  for (int g = 0; g < strategy.traits.kept_groups; ++g) {
    root = strategy.gather_groups[index(g)];
    if (common_module(root, workload).empty()) break;
  }
  return root;
}

// Returns the modules of the other units that stay gathered; with a number, which goes for the root
// too, one of the root's modules.
Json kept_units(const Strategy& strategy, const std::vector<int>& root, const Workload& workload) {
  Json names = Json::array();
  if (!strategy.regather) return names;
  const auto add = [&](const std::vector<int>& tensors) {
    const Path module = common_module(tensors, workload);
    if (!module.empty()) names.push_back(text_of(module));
  };
  if (strategy.traits.regather_group > 0 && !root.empty()) add({root.front()});
  for (int g = 0; g < strategy.traits.kept_groups; ++g) {
    if (strategy.gather_groups[index(g)] != root) add(strategy.gather_groups[index(g)]);
  }
  return names;
}

// Returns a unit's tensors and those of a unit inside it: a unit that is summed before it despite a
// later last gradient, or gathered after it despite an earlier first one.
std::vector<int> with_inner(const std::vector<int>& own, const Strategy& strategy) {
  std::vector<int> all = own;
  if (!strategy.traits.buckets.in_turn) return all;
  const auto is_own = [&](const std::vector<int>& group) {
    return std::ranges::is_permutation(group, own);
  };
  const auto add = [&](const std::vector<int>& group) {
    all.insert(all.end(), group.begin(), group.end());
  };
  const auto& sums = strategy.fusion.groups;
  const auto summed = std::ranges::find_if(sums, is_own);
  if (summed != sums.end() && summed != sums.begin()) {
    const auto& ahead = *(summed - 1);
    if (std::ranges::max(ahead) > std::ranges::max(own)) add(ahead);
  }
  const auto& gathers = strategy.gather_groups;
  const auto gathered =
      std::find_if(gathers.begin() + strategy.traits.kept_groups, gathers.end(), is_own);
  if (strategy.regather && gathered != gathers.end() && gathered + 1 != gathers.end()) {
    const auto& behind = *(gathered + 1);
    if (std::ranges::min(behind) < std::ranges::min(own)) add(behind);
  }
  return all;
}

// Returns the value of FSDP2's reshard_after_forward with which the root stays gathered, or is
// gathered again: without the key it stays.
std::vector<Json> reshard_words(const Strategy& strategy) {
  if (!strategy.regather) return {false};
  if (strategy.traits.regather_group > 0) return {strategy.traits.regather_group};
  return {nullptr, true};
}

// Returns the modules that are wrapped for these buckets.
std::vector<Path> modules_of(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                             const std::vector<int>& root, const Workload& workload) {
  std::vector<Path> modules;
  std::size_t covered = 0;
  for (const auto& bucket : buckets) {
    if (covered >= workload.tensors.size()) break;  // of an earlier micro-batch
    covered += bucket.tensors.size();
    Path module = common_module(with_inner(bucket.tensors, strategy), workload);
    const bool own = !std::ranges::is_permutation(bucket.tensors, root);
    if (!module.empty() && own) modules.push_back(std::move(module));
  }
  return modules;
}

// Returns units of several modules, each as a list of these.
std::vector<Json> joined_units(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                               const std::vector<int>& root, const Workload& workload) {
  std::vector<Json> units;
  std::size_t covered = 0;
  for (const auto& bucket : buckets) {
    if (!strategy.regather || covered >= workload.tensors.size()) break;
    covered += bucket.tensors.size();
    const bool own = !std::ranges::is_permutation(bucket.tensors, root);
    if (!own || !common_module(bucket.tensors, workload).empty()) continue;
    Json unit = Json::array();
    for (const int t : bucket.tensors) {
      const Json name = text_of(common_module({t}, workload));
      if (std::ranges::find(unit, name) == unit.end()) unit.push_back(name);
    }
    units.push_back(std::move(unit));
  }
  return units;
}

const char* word_of(const Strategy& strategy, bool hybrid) {
  if (strategy.exchange != Strategy::Exchange::kSharded) return "NO_SHARD";
  if (hybrid) return strategy.regather ? "HYBRID_SHARD" : "_HYBRID_SHARD_ZERO2";
  return strategy.regather ? "FULL_SHARD" : "SHARD_GRAD_OP";
}

Json formats_of(const Strategy& strategy, const Workload& workload) {
  const auto name = [](DType format) {
    return format == DType::kFp32 ? "float32" : format == DType::kFp16 ? "float16" : "bfloat16";
  };
  const auto& sums = strategy.fusion.sum_format;
  const DType own = own_format(workload);
  const Bytes parameter = strategy.traits.gather_bytes;
  const bool narrower = parameter > 0 && parameter < size_of(own);
  const bool wider = parameter > size_of(own);
  if (sums.value_or(own) == own && !narrower && !wider) return Json::object();
  const DType gathered = narrower ? DType::kBf16 : wider ? DType::kFp32 : own;
  return {{"param_dtype", name(gathered)}, {"reduce_dtype", name(sums.value_or(own))}};
}

// Returns configurations of these units, FSDP2's before FSDP1's unless the strategy is as FSDP1's.
std::vector<Json> configs_of(const Json& units, const Strategy& strategy,
                             const std::vector<int>& root, const Workload& workload,
                             const Cluster& cluster) {
  const bool sharded = strategy.exchange == Strategy::Exchange::kSharded;
  const int shards = sharded ? shard_ranks(strategy, cluster.ranks()) : cluster.ranks();
  const bool hybrid = shards != 0 && shards < cluster.ranks();
  const Json mesh = hybrid ? Json{kOthers, shards} : Json();
  Json config{{"units", units}};
  const bool staged = workload.parallel.pipeline > 1;
  if (workload.micro_batches > 1 && !staged) config["no_sync"] = !strategy.each_micro_batch;
  const Json formats = formats_of(strategy, workload);
  Json second = config;
  second["version"] = 2;
  if (!formats.empty()) second[formats_key(2)] = formats;
  const Json kept = kept_units(strategy, root, workload);
  if (!kept.empty()) second["not_resharded"] = kept;
  if (strategy.traits.across_last) second[kAcross] = false;
  if (hybrid) second["mesh"] = mesh;
  const bool offloaded = strategy.offload != Strategy::Offload::kNone;
  if (offloaded) second[offload_key(2)] = "CPUOffloadPolicy";
  std::vector<Json> configs;
  for (const Json& word : reshard_words(strategy)) {
    configs.push_back(patched_config(second, {{"reshard_after_forward", word}}));
  }
  Json first = config;
  first["version"] = 1;
  if (!formats.empty()) first[formats_key(1)] = formats;
  first["sharding_strategy"] = word_of(strategy, hybrid);
  if (offloaded) first[offload_key(1)] = true;
  if (hybrid && shards != cluster.gpus_per_node) first["device_mesh"] = mesh;
  const bool older = !sharded || (strategy.traits.buckets.pad_elements == shards && shards > 1);
  configs.insert(older ? configs.begin() : configs.end(), std::move(first));
  return configs;
}

std::vector<Json> suggest(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                          const Workload& workload, const Cluster& cluster) {
  std::vector<Json> configs;
  const auto add = [&](const Json& units, const std::vector<int>& root) {
    for (Json& config : configs_of(units, strategy, root, workload, cluster)) {
      configs.push_back(std::move(config));
    }
  };
  std::vector<std::vector<int>> roots{root_of(strategy, buckets, workload)};
  if (!roots.front().empty()) roots.emplace_back();  // it is gathered again
  for (const std::vector<int>& root : roots) {
    const std::vector<Path> modules = modules_of(strategy, buckets, root, workload);
    const std::vector<Json> joined = joined_units(strategy, buckets, root, workload);
    Json each = Json::array();
    for (const auto& module : modules) each.push_back(text_of(module));
    for (Json units : {in_patterns(modules), each}) {
      const Json apart = units;  // the root has what is joined
      for (const Json& unit : joined) units.push_back(unit);
      add(units, root);
      if (!joined.empty()) add(apart, root);
    }
  }
  return configs;
}

// Returns units of `count` neighbouring layers each.
Json units_of_layers(const std::vector<Path>& layers, std::size_t count) {
  std::vector<std::string> names;
  for (const Path& layer : layers) {
    const std::string name = text_of(layer);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  Json units = Json::array();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i % count == 0) units.push_back(Json::array());
    units.back().push_back(names[i]);
  }
  return units;
}

// Tries everything as one unit, and numbered modules (a model's layers) as units, as people do:
// each one, or several together.
std::vector<Json> candidates(const Strategy&, const Workload& workload, const Cluster&,
                             const Partitions&) {
  const std::vector<Path> layers = layers_of(workload);
  std::vector<Json> all{Json::array()};
  for (const std::size_t count : {2, 3, 4, 8}) {
    if (count < layers.size()) all.push_back(units_of_layers(layers, count));
  }
  all.push_back(in_patterns(layers));
  std::vector<Json> configs;
  for (const Json& again : {Json(), Json(false)}) {
    for (const Json& units : all) {
      configs.push_back(
          patched_config({{"version", 2}, {"units", units}}, {{"reshard_after_forward", again}}));
    }
  }
  return configs;
}

// Varies the ranks that shards lie on, and if the backward pass gathers parameters again.
Changes changes(const Json& config, const Cluster& cluster) {
  Changes changes = accumulation_changes();
  if (config.value("version", 2) == 1) {
    const bool hybrid = is_hybrid(config.value("sharding_strategy", "FULL_SHARD"));
    for (const bool flat : {true, false}) {
      changes.push_back({ChangeKind::kFusion, {{"use_orig_params", flat}}});
    }
    for (const char* word : {"FULL_SHARD", "SHARD_GRAD_OP"}) {
      changes.push_back({hybrid ? ChangeKind::kHierarchy : ChangeKind::kAlgorithm,
                         {{"sharding_strategy", word}, {"device_mesh", nullptr}}});
    }
    for (const char* word : {"HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}) {
      changes.push_back({hybrid ? ChangeKind::kAlgorithm : ChangeKind::kHierarchy,
                         {{"sharding_strategy", word}}});
      for (const std::int64_t shards : groups_below(cluster)) {
        changes.push_back({ChangeKind::kHierarchy,
                           {{"sharding_strategy", word}, {"device_mesh", {kOthers, shards}}}});
      }
    }
    return changes;
  }
  // Without the key the root alone stays gathered.
  const std::vector<Json> words{false, nullptr, true};
  for (const Json& again : words) {
    changes.push_back({ChangeKind::kAlgorithm, {{"reshard_after_forward", again}}});
    if (config.contains("mesh")) {
      changes.push_back(
          {ChangeKind::kHierarchy, {{"mesh", nullptr}, {"reshard_after_forward", again}}});
    }
  }
  for (const std::int64_t shards : groups_below(cluster)) {
    changes.push_back({ChangeKind::kHierarchy, {{"reshard_after_forward", shards}}});
    for (const Json& again : words) {
      changes.push_back({ChangeKind::kHierarchy,
                         {{"mesh", {kOthers, shards}}, {"reshard_after_forward", again}}});
    }
  }
  return changes;
}

}  // namespace

Dialect fsdp_dialect() {
  return {.name = "fsdp",
          .summary = "FSDP 1 and 2: units, resharding after the forward pass",
          .read = read,
          .suggest = suggest,
          .changes = changes,
          .defaults = {{"version", 2}, {"reshard_after_forward", nullptr}, {"no_sync", false}},
          .candidates = candidates,
          .schemes = pytorch_schemes,
          .kernels = "pytorch",
          .host_share = kHooksOfUnits,
          .code = fsdp_code,
          .group_keys = {"mesh", "device_mesh", "sharding_strategy", "reshard_after_forward"}};
}

}  // namespace syncline::dialect
