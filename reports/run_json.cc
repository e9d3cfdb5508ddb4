#include "reports/run_report.h"

#include <nlohmann/json.hpp>

#include "reports/fields.h"
#include "reports/figures.h"
#include "reports/memory.h"
#include "reports/provenance.h"

namespace syncline::reports {
namespace {

void put_figures(Json& object, std::span<const Field> fields, const measure::Row& row) {
  for (const auto& field : fields) {
    if (const auto value = field.of(row)) object[std::string(field.name)] = exact(*value);
  }
}

Json sweep_json(const SweepPoint& sweep) {
  Json object = Json::object();
  for (const auto& [path, value] : sweep) object[path] = value;
  return object;
}

Json buckets_json(const std::vector<std::pair<std::int64_t, double>>& buckets) {
  Json list = Json::array();
  for (const auto& [tensors, mebibytes] : buckets) {
    list.push_back(Json::array({Json(tensors), exact(mebibytes)}));
  }
  return list;
}

Json published_json(const measure::Row& row) {
  Json object = Json::object();
  put_figures(object, published_fields(), row);
  if (!row.published->buckets.empty()) object["buckets"] = buckets_json(row.published->buckets);
  object["use"] = use_of(*row.published);
  if (!row.published->source.empty()) object["source"] = row.published->source;
  if (!row.published->note.empty()) object["note"] = row.published->note;
  return object;
}

Json row_json(const measure::Row& row) {
  Json object = Json::object();
  object["strategy"] = row.strategy;
  object["executor"] = row.executor;
  object["sweep"] = sweep_json(row.sweep);
  put_figures(object, predicted_fields(), row);
  put_figures(object, interval_fields(), row);
  if (row.memory.total() > 0) object["memory_bytes"] = memory_json(row.memory);
  // Buckets can be many; they are listed where there is something to compare them with.
  if (row.published && !row.published->buckets.empty()) {
    object["buckets"] = buckets_json(row.buckets);
  }
  if (row.published) object["published"] = published_json(row);
  put_figures(object, error_fields(), row);
  return object;
}

Json rows_json(const std::vector<measure::Row>& rows) {
  Json list = Json::array();
  for (const auto& row : rows) list.push_back(row_json(row));
  return list;
}

Json parameters_json(const std::vector<measure::Fitted>& parameters) {
  Json object = Json::object();
  for (const auto& fitted : parameters) object[fitted.path] = exact(fitted.value);
  return object;
}

// One object, or one for each part of the sweep that was fitted on its own.
Json calibration_json(const std::vector<measure::Fitted>& fitted) {
  if (fitted.front().at.empty()) return Json{{"parameters", parameters_json(fitted)}};
  Json parts = Json::array();
  for (std::size_t i = 0; i < fitted.size();) {
    std::vector<measure::Fitted> together;
    Json at = Json::object();
    for (const auto& [path, value] : fitted[i].at) at[path] = value;
    const std::size_t first = i;
    for (; i < fitted.size() && fitted[i].at == fitted[first].at; ++i) {
      together.push_back(fitted[i]);
    }
    parts.push_back(Json{{"at", at}, {"parameters", parameters_json(together)}});
  }
  return Json{{"parts", parts}};
}

Json splits_json(const std::vector<measure::Split>& splits) {
  Json list = Json::array();
  for (const auto& split : splits) {
    list.push_back(Json{{"left_out", split.left_out},
                        {"parameters", parameters_json(split.parameters)},
                        {"rows", rows_json(split.rows)}});
  }
  return list;
}

Json provenance_json(const measure::Report& report) {
  Json object = Json::object();
  object["executor"] = report.executor;
  object["baseline"] = report.baseline;
  object["workload"] = report.workload;
  object["cluster"] = report.cluster;
  object["seed"] = report.seed;
  object["sources"] = report.sources;
  if (!report.out_of_range.empty()) object["out_of_range"] = report.out_of_range;
  object["figures"] = figures_sentence(report);
  if (!report.inexact.empty()) object["accuracy"] = accuracy_sentence(report);
  return object;
}

}  // namespace

Json json_of(const measure::Report& report) {
  Json object = Json::object();
  if (!report.complete) object["complete"] = false;
  if (!report.shortage.empty()) object["does_not_fit"] = report.shortage;
  object["rows"] = rows_json(report.rows);
  if (!report.fitted.empty()) object["calibration"] = calibration_json(report.fitted);
  if (!report.splits.empty()) object["splits"] = splits_json(report.splits);
  object["provenance"] = provenance_json(report);
  return object;
}

Answer answer_of(const measure::Report& report) {
  return {"run",
          report.scenario,
          [&] { return page_of(report); },
          [&] { return csv_of(report); },
          [&] { return json_of(report); },
          report.remarks,
          [&] { return figures_of(report); }};
}

}  // namespace syncline::reports
