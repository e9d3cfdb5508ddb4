#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/calibrate.h"
#include "cli/executors.h"
#include "cli/files.h"
#include "cli/output.h"
#include "core/compress/codec.h"
#include "core/error.h"
#include "core/input/cluster_json.h"
#include "live/link_calibration.h"
#include "reports/validation_report.h"

namespace syncline::cli {

int calibrate_live(const CalibrateOptions& options) {
  const auto& ranks = options.ranks;
  const std::string key = "calibrate " + std::to_string(options.gpus_per_node) + options.codec;
  return with_ranks(ranks, key, [&](live::ControlChannel& channel) {
    const int inside = options.gpus_per_node;
    if (channel.ranks() < 2 || channel.ranks() % inside != 0) {
      throw InputError("--gpus-per-node: found " + std::to_string(inside) +
                       ", expected a divisor of the " + std::to_string(channel.ranks()) +
                       " ranks, of which there must be two at least");
    }
    const Cluster shape = live::unmeasured_cluster(options.name, channel.ranks() / inside, inside);
    const bool first = channel.rank() == 0;
    if (first) std::cerr << "measuring the links of " << channel.ranks() << " ranks" << std::endl;
    live::LinkCalibrationSettings settings;
    settings.codec = compress::find_codec(options.codec);
    const auto calibration =
        live::calibrate_links(channel, backend_named(options.live).make, shape, settings);
    channel.barrier();
    if (!first) return 0;
    Json json = input::cluster_json(shape, 6);
    live::set_measured_links(calibration, json);
    measure::Validation validation;
    validation.cluster = options.name;
    validation.ranks = channel.ranks();
    validation.samples = calibration.samples;
    const reports::Answer answer = reports::links_answer(validation, json);
    answer_with(
        {{options.out, [&] { return json.dump(2) + "\n"; }}, html_file(options.html, answer)},
        [&] { print(answer, options.format); });
    return 0;
  });
}

}  // namespace syncline::cli
