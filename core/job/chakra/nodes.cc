#include "core/job/chakra/nodes.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

#include "core/error.h"

namespace syncline::job::chakra {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr std::uint32_t tag(int field, WireFormatLite::WireType type) {
  return static_cast<std::uint32_t>(field) << 3 | static_cast<std::uint32_t>(type);
}
constexpr auto kVarint = WireFormatLite::WIRETYPE_VARINT;
constexpr auto kLength = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

CodedInputStream stream_of(std::string_view bytes) {
  return CodedInputStream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
}

bool read_text(CodedInputStream& in, std::string& text) {
  std::uint32_t size = 0;
  return in.ReadVarint32(&size) && in.ReadString(&text, static_cast<int>(size));
}

// A message inside another: `field` reads what stands behind each of its tags.
template <typename Field>
bool read_fields(CodedInputStream& in, const Field& field) {
  while (const std::uint32_t found = in.ReadTag()) {
    if (!field(in, found)) return false;
  }
  return in.ConsumedEntireMessage();
}

template <typename Field>
bool read_message(CodedInputStream& in, const Field& field) {
  std::uint32_t size = 0;
  if (!in.ReadVarint32(&size) || size > static_cast<std::uint32_t>(in.BytesUntilLimit())) {
    return false;
  }
  const auto outer = in.PushLimit(static_cast<int>(size));
  const bool read = read_fields(in, field);
  in.PopLimit(outer);
  return read;
}

// Of the attribute's value, a number of any of the integer kinds and of truth, or text.
struct Attribute {
  std::string name;
  std::int64_t number = 0;
  std::string text;
};

bool read_attribute_field(CodedInputStream& in, std::uint32_t found, Attribute& attribute) {
  constexpr int kName = 1, kInt32 = 7, kInt64 = 9, kUint32 = 11, kUint64 = 13, kBool = 27,
                kText = 29;
  switch (found) {
    case tag(kName, kLength):
      return read_text(in, attribute.name);
    case tag(kText, kLength):
      return read_text(in, attribute.text);
    case tag(kInt32, kVarint):
    case tag(kInt64, kVarint):
    case tag(kUint32, kVarint):
    case tag(kUint64, kVarint):
    case tag(kBool, kVarint): {
      std::uint64_t number = 0;
      const bool read = in.ReadVarint64(&number);
      attribute.number = static_cast<std::int64_t>(number);
      return read;
    }
    default:
      return WireFormatLite::SkipField(&in, found);
  }
}

bool read_attribute(CodedInputStream& in, Node& node) {
  Attribute attribute;
  const bool read = read_message(in, [&](CodedInputStream& inner, std::uint32_t found) {
    return read_attribute_field(inner, found, attribute);
  });
  if (attribute.name == "is_cpu_op") node.host = attribute.number != 0;
  if (attribute.name == "comm_type") node.comm_type = attribute.number;
  if (attribute.name == "comm_size") node.comm_size = attribute.number;
  if (attribute.name == "pg_name") node.group = attribute.text;
  if (attribute.name == "stream") node.lane = attribute.number;
  if (attribute.name == "tid" && node.lane < 0) node.lane = attribute.number;
  return read;
}

// Ids as one packed list, or one each.
bool read_ids(CodedInputStream& in, std::vector<std::uint64_t>& ids) {
  std::uint32_t size = 0;
  if (!in.ReadVarint32(&size) || size > static_cast<std::uint32_t>(in.BytesUntilLimit())) {
    return false;
  }
  const auto outer = in.PushLimit(static_cast<int>(size));
  std::uint64_t id = 0;
  bool read = true;
  while (read && in.BytesUntilLimit() > 0) {
    read = in.ReadVarint64(&id);
    if (read) ids.push_back(id);
  }
  in.PopLimit(outer);
  return read;
}

bool read_node_field(CodedInputStream& in, std::uint32_t found, Node& node) {
  constexpr int kId = 1, kName = 2, kType = 3, kControl = 4, kData = 5, kDuration = 7,
                kAttribute = 10;
  std::uint64_t number = 0;
  switch (found) {
    case tag(kId, kVarint):
      return in.ReadVarint64(&node.id);
    case tag(kName, kLength):
      return read_text(in, node.name);
    case tag(kType, kVarint):
      if (!in.ReadVarint64(&number)) return false;
      node.type = number <= 7 ? static_cast<NodeType>(number) : NodeType::kOther;
      return true;
    case tag(kControl, kLength):
    case tag(kData, kLength):
      return read_ids(in, node.dependencies);
    case tag(kControl, kVarint):
    case tag(kData, kVarint):
      if (!in.ReadVarint64(&number)) return false;
      node.dependencies.push_back(number);
      return true;
    case tag(kDuration, kVarint):
      if (!in.ReadVarint64(&number)) return false;
      node.duration = static_cast<double>(number) * kMicrosecond;
      return true;
    case tag(kAttribute, kLength):
      return read_attribute(in, node);
    default:
      // A field of the schema with another type than the schema's is no field of it.
      return found >> 3 > kAttribute || found >> 3 == 6 || found >> 3 == 8 || found >> 3 == 9
                 ? WireFormatLite::SkipField(&in, found)
                 : false;
  }
}

bool read_metadata_field(CodedInputStream& in, std::uint32_t found, std::string& version) {
  constexpr int kVersion = 1, kAttribute = 2;
  if (found == tag(kVersion, kLength)) return read_text(in, version);
  return found >> 3 >= kAttribute && WireFormatLite::SkipField(&in, found);
}

// The first message is the metadata, unless its first field is a node's id: traces from before
// there was any.
bool is_node(std::string_view message) {
  constexpr int kId = 1;
  return !message.empty() && static_cast<std::uint8_t>(message.front()) == tag(kId, kVarint);
}

bool parse_metadata(std::string_view message, std::string& version) {
  CodedInputStream in = stream_of(message);
  const auto limit = in.PushLimit(static_cast<int>(message.size()));
  static_cast<void>(limit);  // of the whole stream: nothing stands behind it
  return read_fields(in, [&](CodedInputStream& inner, std::uint32_t found) {
    return read_metadata_field(inner, found, version);
  });
}

bool parse_node(std::string_view message, Node& node) {
  CodedInputStream in = stream_of(message);
  const auto limit = in.PushLimit(static_cast<int>(message.size()));
  static_cast<void>(limit);
  return read_fields(in, [&](CodedInputStream& inner, std::uint32_t found) {
    return read_node_field(inner, found, node);
  });
}

// The length that stands at `at`, which moves behind it; false where there is none.
bool read_length(std::string_view bytes, std::size_t& at, std::size_t& length) {
  CodedInputStream in = stream_of(bytes.substr(at, 10));
  std::uint64_t value = 0;
  if (!in.ReadVarint64(&value)) return false;
  at += static_cast<std::size_t>(in.CurrentPosition());
  length = static_cast<std::size_t>(value);
  return true;
}

}  // namespace

bool begins_like_trace(std::string_view bytes) {
  std::size_t at = 0;
  std::size_t length = 0;
  if (!read_length(bytes, at, length) || length == 0 || at >= bytes.size()) return false;
  const std::string_view message = bytes.substr(at, length);
  Node node;
  std::string version;
  if (message.size() == length) {
    return is_node(message) ? parse_node(message, node) : parse_metadata(message, version);
  }
  // Metadata may hold a whole file: what is there of it must be its first field's tag.
  constexpr int kVersion = 1, kAttribute = 2;
  const auto first = static_cast<std::uint8_t>(message.front());
  constexpr std::size_t kMost = std::size_t{1} << 30;
  return length < kMost && bytes.size() >= (std::size_t{1} << 16) &&
         (first == tag(kVersion, kLength) || first == tag(kAttribute, kLength));
}

Trace trace_from_bytes(const std::string& name, std::string_view bytes) {
  Trace trace;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t begin = at;
    const auto place = [&] {
      return name + ": message " + std::to_string(trace.nodes.size() + 1) + " at byte " +
             std::to_string(begin);
    };
    std::size_t length = 0;
    if (!read_length(bytes, at, length) || length > bytes.size() - at) {
      throw InputError(place() + " is cut off");
    }
    const std::string_view message = bytes.substr(at, length);
    at += length;
    if (begin == 0 && !is_node(message)) {
      if (!parse_metadata(message, trace.version)) {
        throw InputError(place() + ": expected the metadata of a Chakra trace");
      }
      continue;
    }
    Node node;
    if (!parse_node(message, node)) {
      throw InputError(place() + ": expected a node of a Chakra trace, or it is damaged");
    }
    trace.nodes.push_back(std::move(node));
  }
  return trace;
}

}  // namespace syncline::job::chakra
