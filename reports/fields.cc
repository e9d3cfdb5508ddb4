#include "reports/fields.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace syncline::reports {
namespace {

using Figure = std::optional<double>;

// JSON has no word for infinity and not-a-number: such a figure does not apply.
Figure finite(double value) { return std::isfinite(value) ? Figure(value) : std::nullopt; }
Figure finite(Figure value) { return value ? finite(*value) : value; }

// An end of an interval, 0 where none was worked out.
Figure known(double value) { return value > 0 ? finite(value) : std::nullopt; }

template <double measure::Metrics::*member>
Figure metric(const measure::Row& row) {
  return finite(row.metrics.*member);
}

template <Figure Published::*member>
Figure published(const measure::Row& row) {
  return row.published ? finite((*row.published).*member) : std::nullopt;
}

Figure published_collectives(const measure::Row& row) {
  if (!row.published || !row.published->collectives) return std::nullopt;
  return static_cast<double>(*row.published->collectives);
}

constexpr Field kPredicted[] = {
    {"step_time_s", metric<&measure::Metrics::step_time>},
    {"throughput", metric<&measure::Metrics::throughput>},
    {"speedup", [](const measure::Row& row) { return finite(row.speedup); }},
    {"collectives", metric<&measure::Metrics::collectives>},
    {"bytes_on_wire_per_rank", metric<&measure::Metrics::bytes_on_wire>},
    {"compute_s", metric<&measure::Metrics::compute>},
    {"communication_s", metric<&measure::Metrics::communication>},
    {"exposed_communication_s", metric<&measure::Metrics::exposed>},
    {"handling_s", metric<&measure::Metrics::handling>},
    {"lower_bound_s", metric<&measure::Metrics::lower_bound>},
};

constexpr Field kIntervals[] = {
    {"step_time_low_s", [](const measure::Row& row) { return known(row.step.low); }},
    {"step_time_high_s", [](const measure::Row& row) { return known(row.step.high); }},
    {"speedup_low", [](const measure::Row& row) { return known(row.gain.low); }},
    {"speedup_high", [](const measure::Row& row) { return known(row.gain.high); }},
};

constexpr Field kPublished[] = {
    {"step_time_s", published<&Published::step_time>},
    {"throughput", published<&Published::throughput>},
    {"speedup", published<&Published::speedup>},
    {"collectives", published_collectives},
    {"accuracy", published<&Published::accuracy>},
};

constexpr Field kErrors[] = {
    {"error_percent", [](const measure::Row& row) { return finite(row.error_percent); }},
    {"left_out_error_percent",
     [](const measure::Row& row) { return finite(row.left_out_error_percent); }},
};

}  // namespace

std::span<const Field> predicted_fields() { return kPredicted; }
std::span<const Field> interval_fields() { return kIntervals; }
std::span<const Field> published_fields() { return kPublished; }
std::span<const Field> error_fields() { return kErrors; }

void put_predicted(Json& object, const measure::Metrics& metrics) {
  measure::Row row;
  row.metrics = metrics;
  row.speedup = std::numeric_limits<double>::quiet_NaN();
  for (const Field& field : kPredicted) {
    if (const auto value = field.of(row)) object[std::string(field.name)] = exact(*value);
  }
}

std::string_view use_of(const Published& published) {
  return published.calibrated ? "calibrated" : "predicted";
}

using measure::gigabytes;

std::string memory_cell(const measure::Memory& memory) {
  if (memory.total() <= 0) return "";
  const bool over = memory.available > 0 && memory.total() > memory.available;
  const std::string of = over ? " of " + gigabytes(memory.available) : "";
  return gigabytes(memory.total()) + of + " GB";
}

std::string memory_sentence(const measure::Memory& memory) {
  std::string text = gigabytes(memory.total()) + " GB a GPU";
  if (memory.available > 0) text += " of " + gigabytes(memory.available);
  text += ": weights " + gigabytes(memory.weights) + ", gradients " + gigabytes(memory.gradients) +
          ", optimizer " + gigabytes(memory.optimizer) + ", buffers " + gigabytes(memory.buffers);
  return text +
         (memory.counts_activations()
              ? ", activations about " + gigabytes(memory.activations) + " without recomputation"
              : "; activations are not counted");
}

Json memory_json(const measure::Memory& memory) {
  Json json{{"total", exact(memory.total())},
            {"weights", exact(memory.weights)},
            {"gradients", exact(memory.gradients)},
            {"optimizer", exact(memory.optimizer)},
            {"buffers", exact(memory.buffers)}};
  if (memory.counts_activations()) json["activations"] = exact(memory.activations);
  if (memory.available > 0) {
    json["available"] = exact(memory.available);
    json["fits"] = memory.fits();
  }
  return json;
}

}  // namespace syncline::reports
