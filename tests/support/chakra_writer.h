// Writes Chakra traces, byte by byte as protobuf's wire format says, without protobuf.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncline::test {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}

inline std::string number_field(std::uint64_t field, std::uint64_t value) {
  return varint(field << 3) + varint(value);
}

inline std::string bytes_field(std::uint64_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}

// A message as it stands in the file.
inline std::string framed(const std::string& message) { return varint(message.size()) + message; }

inline std::string chakra_metadata() { return framed(bytes_field(1, "0.0.4")); }

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  std::uint64_t type = 4;  // COMP_NODE; 7: COMM_COLL_NODE
  std::vector<std::uint64_t> dependencies;
  std::uint64_t duration = 0;  // microseconds
  bool host = false;
  std::uint64_t comm_type = 0;
  std::uint64_t comm_size = 0;  // bytes
  std::int64_t stream = -1;
  bool packed = true;  // dependencies as one list

  std::string message() const {
    const auto attribute = [](const std::string& name_of, const std::string& value) {
      return bytes_field(10, bytes_field(1, name_of) + value);
    };
    // A field that is 0 is not written.
    std::string bytes = id > 0 ? number_field(1, id) : "";
    bytes += bytes_field(2, name) + number_field(3, type);
    std::string list;
    for (const std::uint64_t one : dependencies) {
      list += packed ? varint(one) : number_field(5, one);
    }
    if (!list.empty()) bytes += packed ? bytes_field(5, list) : list;
    if (duration > 0) bytes += number_field(7, duration);
    bytes += bytes_field(8, bytes_field(1, "[]"));
    if (type == 7) {
      bytes += attribute("comm_type", number_field(9, comm_type));
      bytes += attribute("comm_size", number_field(9, comm_size));
      bytes += attribute("pg_name", bytes_field(29, "0"));
    }
    if (host) bytes += attribute("is_cpu_op", number_field(27, 1));
    if (stream >= 0) {
      bytes += attribute("stream", number_field(9, static_cast<std::uint64_t>(stream)));
    }
    return framed(bytes);
  }
};

}  // namespace syncline::test
