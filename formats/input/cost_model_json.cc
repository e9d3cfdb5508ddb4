#include "formats/input/cost_model_json.h"

// Reads and writes the cost model of a calibrated cluster.
#include <array>

#include "formats/text/digits.h"

namespace syncline::input {
namespace {

constexpr double kMegabyte = 1e6;
constexpr std::array<const char*, 3> kAlgorithms = {"nccl", "ring", "tree"};
constexpr std::array<const char*, 3> kForms = {"segments", "envelope", "sum"};

// Rounds to seven significant digits: more than any measurement has, and short to read.
double rounded(double value) { return significant(value, 7); }

double micro(Seconds value) { return rounded(value / kMicrosecond); }
double giga(BytesPerSecond value) { return rounded(value / kGigabytePerSecond); }
double in_percent(double share) { return rounded(share * 100); }

Json table_json(const cost::TableCostModel& table) {
  Json lines = Json::array();
  for (const cost::SizeLine& line : table.cost_model.lines) {
    lines.push_back({{"from_bytes", line.from},
                     {"to_bytes", line.to},
                     {"latency_us", micro(line.latency)},
                     {"us_per_mbyte", micro(line.seconds_per_byte * kMegabyte)}});
  }
  Json json = {{"collective", std::string(collective::to_string(table.kind))},
               {"nodes", table.nodes},
               {"gpus_per_node", table.gpus_per_node},
               {"source", table.source},
               {"rows", table.rows},
               {"min_bytes", table.min_bytes},
               {"max_bytes", table.max_bytes},
               {"clean", table.clean},
               {"in_sample_percent", in_percent(table.in_sample)},
               {"form", kForms[static_cast<std::size_t>(table.cost_model.form)]},
               {"lines", lines}};
  if (table.left_out >= 0) json["left_out_percent"] = in_percent(table.left_out);
  if (table.cost_model.form == cost::SizeCostModel::Form::kSum)
    json["exponent"] = table.cost_model.exponent;
  for (const cost::SizeSpread& one : table.spreads) {
    json["spreads"].push_back({{"bytes", one.bytes}, {"percent", in_percent(one.spread)}});
  }
  if (table.slow > 0) json["slow_percent"] = in_percent(table.slow);
  if (!table.outliers.empty()) json["outlier_bytes"] = table.outliers;
  if (table.forced != cost::ForcedAlgorithm::kNone) {
    json["algorithm"] = kAlgorithms[static_cast<std::size_t>(table.forced)];
  }
  return json;
}

Json scale_json(const cost::ScaleCostModel& scale) {
  const cost::GraphGuess& graph = scale.graph;
  Json steps = Json::array();
  for (const cost::StepCostModel& cost_model : scale.steps) {
    Json step = {{"path", cost::to_string(cost_model.path)},
                 {"base_us", micro(cost_model.base)},
                 {"latency_us", micro(cost_model.latency)},
                 {"bandwidth_gbytes_per_s", giga(cost_model.bandwidth)}};
    if (cost_model.path.tree) {
      step["fill_us"] = micro(cost_model.fill);
      step["chain_us"] = micro(cost_model.chain);
    } else {
      step["intra_share"] = rounded(cost_model.intra_share);
      step["exponent"] = cost_model.exponent;
    }
    steps.push_back(std::move(step));
  }
  Json rates = Json::array();
  for (const cost::NodeRate& rate : scale.rates) {
    rates.push_back(
        {{"gpus_per_node", rate.gpus_per_node}, {"bandwidth_gbytes_per_s", giga(rate.bandwidth)}});
  }
  return {{"graph",
           {{"amd", graph.amd},
            {"channels", graph.channels},
            {"ring_intra_gbytes_per_s", giga(graph.ring_intra)},
            {"ring_inter_gbytes_per_s", giga(graph.ring_inter)},
            {"tree_intra_gbytes_per_s", giga(graph.tree_intra)},
            {"tree_inter_gbytes_per_s", giga(graph.tree_inter)},
            {"plain_tree", graph.plain_tree},
            {"ll128", graph.ll128}}},
          {"latency_scale", rounded(scale.prior.latency_scale)},
          {"inside_scale", rounded(scale.prior.inside_scale)},
          {"bandwidth_gbytes_per_s", giga(scale.prior.bandwidth)},
          {"inside_gbytes_per_s", giga(scale.inside)},
          {"median_error_percent", in_percent(scale.in_sample)},
          {"rates", rates},
          {"steps", steps}};
}

collective::CollectiveKind read_kind(Reader& reader) {
  std::vector<std::string> words;
  for (const auto kind : collective::kAllCollectiveKinds) {
    words.emplace_back(collective::to_string(kind));
  }
  reader.require("collective");
  return cost::kind_named(reader.word_or("collective", "", words))
      .value_or(collective::CollectiveKind::kAllReduce);
}

constexpr double kMaxBytes = 1e15;
constexpr double kMaxMicro = 1e12;
constexpr Reader::Limits kBytes = {0, kMaxBytes, true};
constexpr Reader::Limits kTime = {0, kMaxMicro};
constexpr Reader::Limits kRate = {0, 1e7, true};
constexpr Reader::Limits kShare = {0, 1e9};
constexpr Reader::Limits kExponent = {1, 64};
constexpr int kMaxCount = 1 << 20;

bool required_flag(Reader& reader, const char* key) {
  reader.require(key);
  return reader.boolean_or(key, false);
}

std::vector<cost::SizeSpread> read_spreads(Reader& table) {
  std::vector<cost::SizeSpread> spreads;
  if (!table.has("spreads")) return spreads;
  for (Reader& one : table.objects("spreads")) {
    const double bytes = one.number("bytes", kBytes);
    if (!spreads.empty() && bytes <= spreads.back().bytes) {
      one.fail("bytes", "expected more than in the entry before");
    }
    spreads.push_back({bytes, one.number("percent", {0, 1000}) / 100});
    one.finish();
  }
  return spreads;
}

cost::TableCostModel read_table(Reader reader) {
  cost::TableCostModel table;
  table.kind = read_kind(reader);
  table.nodes = static_cast<int>(reader.integer("nodes", 1, kMaxCount));
  table.gpus_per_node = static_cast<int>(reader.integer("gpus_per_node", 1, 1024));
  const std::string algorithm =
      reader.word_or("algorithm", kAlgorithms[0], {kAlgorithms.begin(), kAlgorithms.end()});
  if (algorithm == kAlgorithms[1]) table.forced = cost::ForcedAlgorithm::kRing;
  if (algorithm == kAlgorithms[2]) table.forced = cost::ForcedAlgorithm::kTree;
  if (table.forced == cost::ForcedAlgorithm::kTree &&
      table.kind != collective::CollectiveKind::kAllReduce) {
    reader.fail("algorithm", "tree, which NCCL has for all_reduce only");
  }
  table.source = reader.text_or("source", "");
  table.rows = static_cast<int>(reader.integer("rows", 1, kMaxCount));
  table.min_bytes = reader.number("min_bytes", kBytes);
  table.max_bytes = reader.number("max_bytes", kBytes);
  if (table.max_bytes < table.min_bytes) reader.fail("max_bytes", "less than min_bytes");
  table.clean = required_flag(reader, "clean");
  table.in_sample = reader.number("in_sample_percent", kShare) / 100;
  table.left_out = reader.number_or("left_out_percent", -100, kShare) / 100;
  table.spreads = read_spreads(reader);
  table.slow = reader.number_or("slow_percent", 0, kShare) / 100;
  reader.require("form");
  const std::string form = reader.word_or("form", "", {kForms.begin(), kForms.end()});
  table.cost_model.form = form == kForms[0]   ? cost::SizeCostModel::Form::kSegments
                          : form == kForms[1] ? cost::SizeCostModel::Form::kEnvelope
                                              : cost::SizeCostModel::Form::kSum;
  for (Reader& line : reader.objects("lines")) {
    cost::SizeLine& own = table.cost_model.lines.emplace_back();
    own.from = line.number("from_bytes", kBytes);
    own.to = line.number("to_bytes", kBytes);
    if (own.to < own.from) line.fail("to_bytes", "less than from_bytes");
    own.latency = line.number("latency_us", kTime) * kMicrosecond;
    own.seconds_per_byte = line.number("us_per_mbyte", kTime) * kMicrosecond / kMegabyte;
    if (own.latency + own.seconds_per_byte <= 0) line.fail("latency_us", "0 without a slope");
    const auto count = table.cost_model.lines.size();
    if (table.cost_model.form == cost::SizeCostModel::Form::kSegments && count > 1 &&
        own.from <= table.cost_model.lines[count - 2].to) {
      line.fail("from_bytes", "expected more than the line before goes to");
    }
    line.finish();
  }
  if (table.cost_model.form == cost::SizeCostModel::Form::kSum)
    table.cost_model.exponent = reader.number("exponent", kExponent);
  if (reader.has("outlier_bytes")) {
    for (const Json& bytes : reader.array("outlier_bytes")) {
      table.outliers.push_back(checked_integer(bytes, 1, Bytes{1} << 50, reader.file(),
                                               reader.place_of("outlier_bytes")));
    }
  }
  reader.finish();
  if (table.cost_model.lines.empty()) reader.fail("lines", "expected at least one line");
  return table;
}

BytesPerSecond read_rate(Reader& reader, const char* key) {
  return reader.number(key, kRate) * kGigabytePerSecond;
}

cost::StepCostModel read_step(Reader reader) {
  cost::StepCostModel cost_model;
  std::vector<std::string> words;
  for (const cost::StepPath path : cost::all_step_paths()) words.push_back(cost::to_string(path));
  reader.require("path");
  const std::string word = reader.word_or("path", "", words);
  for (const cost::StepPath path : cost::all_step_paths()) {
    if (word == cost::to_string(path)) cost_model.path = path;
  }
  cost_model.base = reader.number("base_us", kTime) * kMicrosecond;
  cost_model.latency = reader.number("latency_us", kTime) * kMicrosecond;
  cost_model.bandwidth = read_rate(reader, "bandwidth_gbytes_per_s");
  if (cost_model.path.tree) {
    cost_model.fill = reader.number("fill_us", kTime) * kMicrosecond;
    cost_model.chain = reader.number_or("chain_us", 0, kTime) * kMicrosecond;
  } else {
    cost_model.intra_share = reader.number("intra_share", {0, 1});
    cost_model.exponent = reader.number("exponent", kExponent);
  }
  reader.finish();
  return cost_model;
}

cost::ScaleCostModel read_scale(Reader reader) {
  cost::ScaleCostModel scale;
  Reader graph = reader.object("graph");
  scale.graph.amd = required_flag(graph, "amd");
  scale.graph.channels = static_cast<int>(graph.integer("channels", 1, 64));
  scale.graph.ring_intra = read_rate(graph, "ring_intra_gbytes_per_s");
  scale.graph.ring_inter = read_rate(graph, "ring_inter_gbytes_per_s");
  scale.graph.tree_intra = read_rate(graph, "tree_intra_gbytes_per_s");
  scale.graph.tree_inter = read_rate(graph, "tree_inter_gbytes_per_s");
  scale.graph.plain_tree = required_flag(graph, "plain_tree");
  scale.graph.ll128 = required_flag(graph, "ll128");
  graph.finish();
  scale.prior.latency_scale = reader.number("latency_scale", kRate);
  scale.prior.inside_scale = reader.number_or("inside_scale", 1, kRate);
  scale.prior.bandwidth = read_rate(reader, "bandwidth_gbytes_per_s");
  scale.inside = reader.number_or("inside_gbytes_per_s", 0, {0, 1e7}) * kGigabytePerSecond;
  scale.in_sample = reader.number("median_error_percent", kShare) / 100;
  for (Reader& rate : reader.objects("rates")) {
    const int gpus = static_cast<int>(rate.integer("gpus_per_node", 1, 1024));
    if (!scale.rates.empty() && gpus <= scale.rates.back().gpus_per_node) {
      rate.fail("gpus_per_node", "expected more than in the entry before");
    }
    scale.rates.push_back({gpus, read_rate(rate, "bandwidth_gbytes_per_s")});
    rate.finish();
  }
  for (Reader& step : reader.objects("steps")) scale.steps.push_back(read_step(step));
  reader.finish();
  if (scale.rates.empty()) reader.fail("rates", "expected at least one");
  return scale;
}

}  // namespace

Json cost_model_json(const cost::MeasuredCostModel& cost_model) {
  Json tables = Json::array();
  for (const cost::TableCostModel& table : cost_model.tables) tables.push_back(table_json(table));
  Json json = {
      {"tables", tables},
      {"node",
       {{"base_us", micro(cost_model.node.base)}, {"step_us", micro(cost_model.node.step)}}}};
  if (cost_model.scale) json["scale"] = scale_json(*cost_model.scale);
  if (cost_model.tree) {
    json["forced_tree"] = {{"factor", rounded(cost_model.tree->factor)},
                           {"source", cost_model.tree->source}};
  }
  return json;
}

cost::MeasuredCostModel read_cost_model(Reader reader) {
  cost::MeasuredCostModel cost_model;
  for (Reader& table : reader.objects("tables")) cost_model.tables.push_back(read_table(table));
  Reader node = reader.object("node");
  cost_model.node.base = node.number("base_us", kTime) * kMicrosecond;
  cost_model.node.step = node.number("step_us", kTime) * kMicrosecond;
  node.finish();
  if (reader.has("scale")) cost_model.scale = read_scale(reader.object("scale"));
  if (reader.has("forced_tree")) {
    Reader tree = reader.object("forced_tree");
    cost_model.tree = cost::TreeFactor{tree.number("factor", kRate), tree.text_or("source", "")};
    tree.finish();
  }
  reader.finish();
  if (cost_model.tables.empty()) reader.fail("tables", "expected at least one table");
  return cost_model;
}

}  // namespace syncline::input
