#include "reports/memory_text.h"

#include <nlohmann/json.hpp>

#include "core/job.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {

using measure::gigabytes;

std::string memory_cell(const measure::Memory& memory) {
  if (memory.total() <= 0) return "";
  const bool narrow = !memory.fits() || memory.may_not_fit();
  const std::string of = narrow ? " of " + gigabytes(memory.available) : "";
  return gigabytes(memory.total()) + of + " GB" + (memory.may_not_fit() ? "?" : "");
}

std::string room_sentence(const measure::Memory& memory, const std::string& name) {
  if (!memory.may_not_fit()) return "";
  return " " + name + " may not fit: " + gigabytes(memory.total()) + " of " +
         gigabytes(memory.available) + " GB are counted, and jobs take up to " +
         share_text(100 * (measure::kUncounted - 1)) + " more.";
}

std::string memory_sentence(const measure::Memory& memory) {
  std::string text = gigabytes(memory.total()) + " GB per GPU";
  if (memory.available > 0) text += " of " + gigabytes(memory.available);
  text += ": weights " + gigabytes(memory.weights) + ", gradients " + gigabytes(memory.gradients) +
          ", optimizer " + gigabytes(memory.optimizer) + ", buffers " + gigabytes(memory.buffers);
  return text +
         (memory.counts_activations()
              ? ", activations about " + gigabytes(memory.activations) +
                    (memory.recompute == Workload::Recompute::kNone ? " without recomputation"
                                                                    : " with recomputation")
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
    // Activations that are not counted may take the rest.
    const bool open = memory.fits() && !memory.counts_activations();
    if (open || memory.may_not_fit()) json["may_not_fit"] = true;
  }
  if (memory.stage >= 0) json["stage"] = memory.stage;
  return json;
}

}  // namespace syncline::reports
