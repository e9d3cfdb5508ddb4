// Hardware by name, as JSON: "device": "h100-sxm", "node": "dgx-h100". Keys next to the name
// replace the catalogue's figures (catalogue/hardware).
#pragma once

#include <string>

#include "catalogue/hardware/device.h"
#include "formats/json/json.h"
#include "formats/json/reader.h"

namespace syncline::input {

// Returns the device's object with its rates as reached (catalogue/hardware/device.h). With
// `rated`, as rated: the share that is reached is given separately.
Json known_device_json(const hardware::KnownDevice& device, bool rated = false);

// Returns a cluster's keys for nodes of this kind, all but their number.
Json known_node_json(const hardware::KnownNode& node);

// Returns did_you_mean for nodes by their names and their devices': "H100" fits all with one.
std::string did_you_mean_node(const std::string& word);

// Returns a cluster's object with `node` and `device` replaced by their figures. Throws InputError
// for an unknown name, with the nearest one.
Json with_known_hardware(Reader& cluster);

}  // namespace syncline::input
