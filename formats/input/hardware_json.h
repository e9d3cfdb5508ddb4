// Hardware by name, as JSON: "device": "h100-sxm", "node": "dgx-h100". Keys next to the name
// replace the figures of the catalogue (catalogue/hardware).
#pragma once

#include <string>

#include "catalogue/hardware/device.h"
#include "formats/json/json.h"
#include "formats/json/reader.h"

namespace syncline::input {

// The device's object with its rates as reached (catalogue/hardware/device.h), or as rated where
// the share that is reached is given beside it.
Json known_device_json(const hardware::KnownDevice& device, bool rated = false);

// A cluster's keys for nodes of this kind, all but their number.
Json known_node_json(const hardware::KnownNode& node);

// As did_you_mean, of nodes by their names and their devices': "H100" fits all that have one.
std::string did_you_mean_node(const std::string& word);

// A cluster's object without names: `node` and `device` filled in. Throws InputError for a name
// that is not known, with the nearest.
Json with_known_hardware(Reader& cluster);

}  // namespace syncline::input
