#include "core/measure/study.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "core/error.h"

namespace syncline::measure {
namespace {

void append(std::string& bytes, const void* data, std::size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

void append(std::string& bytes, std::size_t count) { append(bytes, &count, sizeof count); }

void append(std::string& bytes, const std::string& text) {
  append(bytes, text.size());
  bytes += text;
}

void take(const std::string& bytes, std::size_t& at, void* data, std::size_t size) {
  if (bytes.size() - at < size) throw MachineError("figures from another process are cut short");
  std::memcpy(data, bytes.data() + at, size);
  at += size;
}

std::size_t take_count(const std::string& bytes, std::size_t& at) {
  std::size_t count = 0;
  take(bytes, at, &count, sizeof count);
  return count;
}

std::string take_text(const std::string& bytes, std::size_t& at) {
  const std::size_t size = take_count(bytes, at);
  if (bytes.size() - at < size) throw MachineError("figures from another process are cut short");
  at += size;
  return bytes.substr(at - size, size);
}

}  // namespace

std::string row_bytes(const Row& row) {
  std::string bytes = metrics_bytes(row.metrics);
  append(bytes, &row.memory, sizeof row.memory);
  append(bytes, &row.rounding_error, sizeof row.rounding_error);
  append(bytes, &row.speedup, sizeof row.speedup);
  append(bytes, &row.rate, sizeof row.rate);
  append(bytes, &row.sensitivity, sizeof row.sensitivity);
  append(bytes, &row.step, sizeof row.step);
  append(bytes, &row.gain, sizeof row.gain);
  append(bytes, row.buckets.size());
  for (const auto& [tensors, mib] : row.buckets) {
    append(bytes, &tensors, sizeof tensors);
    append(bytes, &mib, sizeof mib);
  }
  append(bytes, row.company.jobs.size());
  for (const Company::Job& job : row.company.jobs) {
    append(bytes, job.name);
    append(bytes, &job.alone, sizeof job.alone);
    append(bytes, &job.together, sizeof job.together);
  }
  append(bytes, row.company.hot.size());
  for (const auto& [link, load] : row.company.hot) {
    append(bytes, link);
    append(bytes, &load, sizeof load);
  }
  return bytes + row.executor;
}

Row row_from_bytes(const std::string& bytes) {
  Row row;
  std::size_t at = 0;
  take(bytes, at, &row.metrics, sizeof row.metrics);
  take(bytes, at, &row.memory, sizeof row.memory);
  take(bytes, at, &row.rounding_error, sizeof row.rounding_error);
  take(bytes, at, &row.speedup, sizeof row.speedup);
  take(bytes, at, &row.rate, sizeof row.rate);
  take(bytes, at, &row.sensitivity, sizeof row.sensitivity);
  take(bytes, at, &row.step, sizeof row.step);
  take(bytes, at, &row.gain, sizeof row.gain);
  for (std::size_t left = take_count(bytes, at); left > 0; --left) {
    std::pair<std::int64_t, double> bucket;
    take(bytes, at, &bucket.first, sizeof bucket.first);
    take(bytes, at, &bucket.second, sizeof bucket.second);
    row.buckets.push_back(bucket);
  }
  for (std::size_t left = take_count(bytes, at); left > 0; --left) {
    Company::Job& job = row.company.jobs.emplace_back();
    job.name = take_text(bytes, at);
    take(bytes, at, &job.alone, sizeof job.alone);
    take(bytes, at, &job.together, sizeof job.together);
  }
  for (std::size_t left = take_count(bytes, at); left > 0; --left) {
    auto& [link, load] = row.company.hot.emplace_back();
    link = take_text(bytes, at);
    take(bytes, at, &load, sizeof load);
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
