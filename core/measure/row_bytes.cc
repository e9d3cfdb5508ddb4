#include "core/measure/row_bytes.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "core/error.h"

namespace syncline::measure {
namespace {

void append(std::string& bytes, const void* data, std::size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

void take(const std::string& bytes, std::size_t& at, void* data, std::size_t size) {
  if (bytes.size() - at < size) throw MachineError("figures from another process are cut short");
  std::memcpy(data, bytes.data() + at, size);
  at += size;
}

}  // namespace

std::string row_bytes(const Row& row) {
  std::string bytes = metrics_bytes(row.metrics);
  append(bytes, &row.memory, sizeof row.memory);
  append(bytes, &row.speedup, sizeof row.speedup);
  append(bytes, &row.rate, sizeof row.rate);
  append(bytes, &row.sway, sizeof row.sway);
  append(bytes, &row.step, sizeof row.step);
  append(bytes, &row.gain, sizeof row.gain);
  const std::size_t buckets = row.buckets.size();
  append(bytes, &buckets, sizeof buckets);
  for (const auto& [tensors, mib] : row.buckets) {
    append(bytes, &tensors, sizeof tensors);
    append(bytes, &mib, sizeof mib);
  }
  return bytes + row.executor;
}

Row row_from_bytes(const std::string& bytes) {
  Row row;
  std::size_t at = 0;
  take(bytes, at, &row.metrics, sizeof row.metrics);
  take(bytes, at, &row.memory, sizeof row.memory);
  take(bytes, at, &row.speedup, sizeof row.speedup);
  take(bytes, at, &row.rate, sizeof row.rate);
  take(bytes, at, &row.sway, sizeof row.sway);
  take(bytes, at, &row.step, sizeof row.step);
  take(bytes, at, &row.gain, sizeof row.gain);
  std::size_t buckets = 0;
  take(bytes, at, &buckets, sizeof buckets);
  for (; buckets > 0; --buckets) {
    std::pair<std::int64_t, double> bucket;
    take(bytes, at, &bucket.first, sizeof bucket.first);
    take(bytes, at, &bucket.second, sizeof bucket.second);
    row.buckets.push_back(bucket);
  }
  row.executor = bytes.substr(at);
  return row;
}

std::string metrics_bytes(const Metrics& metrics) {
  static_assert(std::is_trivially_copyable_v<Metrics>, "metrics travel as they lie in memory");
  return {reinterpret_cast<const char*>(&metrics), sizeof metrics};
}

std::vector<Metrics> metrics_from_bytes(const std::string& bytes) {
  std::vector<Metrics> list;
  for (std::size_t at = 0; at < bytes.size();) {
    take(bytes, at, &list.emplace_back(), sizeof(Metrics));
  }
  return list;
}

}  // namespace syncline::measure
