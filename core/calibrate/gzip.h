// Logs that were packed with gzip.
#pragma once

#include <string>

namespace syncline::calibrate {

// The text of a file: unpacked where it is gzip's (by its first two bytes), else as it is. Throws
// InputError, naming `path`, where such a file is damaged, cut off or larger than 1 GiB unpacked.
std::string unpacked(const std::string& path, std::string bytes);

}  // namespace syncline::calibrate
