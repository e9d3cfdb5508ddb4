// Numbers as bytes of the messages of a live run.
#pragma once

#include <cstring>
#include <optional>
#include <string>

namespace syncline::live {

// Writes a number as bytes.
template <typename T>
std::string pack_number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Reads a number from the first bytes; nullopt if they are too few.
template <typename T>
std::optional<T> unpack_number(const std::string& bytes) {
  T value{};
  if (bytes.size() < sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace syncline::live
