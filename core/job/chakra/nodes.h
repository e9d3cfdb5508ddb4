// The nodes of a Chakra trace (.et), read from the wire: protobuf messages, each behind its length
// as a varint; first one of GlobalMetadata {version 1, attr 2}, then Nodes {id 1, name 2, type 3,
// ctrl_deps 4, data_deps 5, start_time_micros 6, duration_micros 7, inputs 8, outputs 9, attr 10}.
// (mlcommons/chakra, schema/protobuf/et_def.proto.)
//
// Protobuf's own stream decodes them; no code is generated from the schema. Of its some forty
// messages two with a dozen fields tell of collectives and times, and fields are skipped by their
// number, so that a later schema is read as well, without a copy of it here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace syncline::job::chakra {

enum class NodeType {
  kOther = 0,
  kMetadata = 1,
  kCompute = 4,
  kSend = 5,
  kReceive = 6,
  kCollective = 7
};

struct Node {
  std::uint64_t id = 0;
  std::string name;
  NodeType type = NodeType::kOther;
  std::vector<std::uint64_t> dependencies;  // control and data, by id
  Seconds duration = 0;
  // Attributes; absent ones keep these values.
  bool host = false;           // is_cpu_op
  std::int64_t lane = -1;      // the stream of a device's node, the thread (tid) of a host's
  std::int64_t comm_type = 0;  // CollectiveCommType, of which 0 (all-reduce) is not written
  std::int64_t comm_size = 0;  // bytes
  std::string group;           // pg_name
};

struct Trace {
  std::string version;      // of the schema; empty: not told
  std::vector<Node> nodes;  // as written
};

// Whether such a trace may begin like this: its first message, as far as it is there.
bool begins_like_trace(std::string_view bytes);

// Throws InputError, naming `name` and the byte, for what is cut off or is no such trace.
Trace trace_from_bytes(const std::string& name, std::string_view bytes);

}  // namespace syncline::job::chakra
