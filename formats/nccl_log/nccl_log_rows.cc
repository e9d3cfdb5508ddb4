// Divides printed rows into tables with one kind of row each: drops a time that size / algbw
// contradicts, and separates rows that differ in more than their size.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "formats/nccl_log/nccl_log_parts.h"

namespace syncline::calibrate {
namespace {

std::string amount_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// Returns a time in microseconds.
double microseconds(const std::optional<Seconds>& time) { return *time / kMicrosecond; }

// Returns true if algbw may count only the bytes that a rank sends to others, as busbw does.
bool may_be_sent_away(const RawTable& raw, const PrintedPlace& printed) {
  if (raw.sent_away || !raw.busbw_alone || printed.bus < 0) return raw.sent_away;
  return std::abs(printed.bus - printed.alg) <= printed.alg_half + printed.bus_half;
}

// Removes the times that contradict the bandwidth printed in their own row.
void leave_out_unlawful(const RawTable& raw, LogRow& row) {
  for (const bool out : {true, false}) {
    auto& time = out ? row.row.out_of_place : row.row.in_place;
    if (row.row.size <= 0 || !time || *time <= 0) continue;
    const PrintedPlace& printed = row.places[out ? 0 : 1];
    if (lawful(row.row.size, microseconds(time), printed, may_be_sent_away(raw, printed))) continue;
    const std::string found = "time " + amount_text(microseconds(time)) + " us, ";
    if (printed.alg_half <= 0) {
      row.leave_out(out, found + "without an algbw to compare it with");
    } else {
      row.leave_out(out, found + "but size / algbw is " +
                             amount_text(static_cast<double>(row.row.size) /
                                         std::max(printed.alg, printed.alg_half) / 1e3) +
                             " us: the columns are not what the head says");
    }
    time.reset();
  }
}

// Returns true for clocks, dates and seconds since a start: "12:30:01", "2025-01-01", "1764.25]".
bool is_clock(std::string_view word) {
  int marks = 0;
  for (const char c : word) {
    if (c == ':' || c == '-' || c == '.' || c == '/') {
      ++marks;
    } else if (std::isdigit(static_cast<unsigned char>(c)) == 0 &&
               std::string_view("[]()TZ+,").find(c) == std::string_view::npos) {
      return false;
    }
  }
  return marks > 0;
}

// One column before the size or after the columns that the test prints.
struct OwnColumn {
  bool lead = false;
  std::size_t place = 0;
  std::string name;  // empty: the head has none

  std::string of(const LogRow& row) const {
    const auto& words = lead ? row.lead : row.tail;
    return place < words.size() ? words[place] : std::string();
  }
};

std::tuple<Bytes, std::string, std::string, int> same_but_own(const LogRow& row) {
  return {row.row.size, row.row.type, row.row.redop, row.root};
}

// Returns true if a column distinguishes rows that are otherwise the same measurement.
bool tells_apart(const std::vector<LogRow>& rows, const OwnColumn& column) {
  // Numbers before the head, too, are counts of lines or seconds.
  if (number_of<double>(column.name) || is_clock(column.name)) return false;
  std::map<decltype(same_but_own(rows.front())), std::set<std::string>> values;
  for (const LogRow& row : rows) {
    if (row.row.size <= 0) continue;
    const std::string word = column.of(row);
    if (word.empty() || is_clock(word)) return false;
    values[same_but_own(row)].insert(word);
  }
  return std::ranges::any_of(values, [](const auto& one) { return one.second.size() > 1; });
}

std::vector<OwnColumn> own_columns(const RawTable& raw) {
  std::vector<OwnColumn> found;
  for (const bool lead : {true, false}) {
    const auto& names = lead ? raw.lead : raw.tail;
    std::size_t most = 0;
    for (const LogRow& row : raw.rows) {
      most = std::max(most, lead ? row.lead.size() : row.tail.size());
    }
    if (!lead) most = std::min(most, names.size());
    for (std::size_t place = 0; place < most; ++place) {
      OwnColumn column{lead, place, place < names.size() ? names[place] : std::string()};
      if (tells_apart(raw.rows, column)) found.push_back(std::move(column));
    }
  }
  return found;
}

std::string own_text(const LogRow& row, const std::vector<OwnColumn>& columns) {
  std::string text;
  for (const OwnColumn& column : columns) {
    text += (text.empty() ? "" : ", ") + (column.name.empty() ? "" : column.name + " ") +
            column.of(row);
  }
  return text;
}

// Narrows a table's possible ranks by one row's figures.
void narrow(RawTable& raw, const PrintedPlace& printed) {
  const double half = std::max(printed.alg_half, printed.bus_half);
  if (!(printed.alg > 20 * half) || printed.bus < 0) return;
  raw.has_ratio = true;
  raw.least_ratio = std::max(raw.least_ratio, (printed.bus - half) / (printed.alg + half));
  raw.largest_ratio = std::min(raw.largest_ratio, (printed.bus + half) / (printed.alg - half));
}

void take_row(RawTable& part, LogRow row) {
  for (const bool out : {true, false}) {
    const auto& time = out ? row.row.out_of_place : row.row.in_place;
    // A place without a time may have valid bandwidths (-C), unless the time was left out.
    if ((time && *time > 0) || row.left_out.empty()) narrow(part, row.places[out ? 0 : 1]);
  }
  part.root = std::max(part.root, row.root);
  for (std::string& sentence : row.left_out) part.table.left_out.push_back(std::move(sentence));
  part.table.rows.push_back(std::move(row.row));
}

// Notes if columns of the library's own choice (RCCL's algo and proto) have several values.
void say_choices(RawTable& raw) {
  for (std::size_t place = 0; place < raw.tail.size(); ++place) {
    if (raw.tail[place] != "algo" && raw.tail[place] != "proto") continue;
    std::vector<std::string> words;
    for (const LogRow& row : raw.rows) {
      if (place >= row.tail.size()) continue;
      const std::string& word = row.tail[place];
      if (words.empty() || words.back() != word) words.push_back(word);
    }
    if (words.empty()) continue;
    std::string text = "by its column " + raw.tail[place] + " the library took";
    for (std::size_t i = 0; i < words.size(); ++i) text += (i > 0 ? ", then " : " ") + words[i];
    raw.table.notes.push_back(text);
  }
}

}  // namespace

void LogRow::leave_out(bool out_of_place, const std::string& why) {
  left_out.push_back("line " + std::to_string(line) + ": " + std::to_string(row.size) + " bytes, " +
                     (out_of_place ? "out of place" : "in place") + ": " + why + ", left out");
}

bool lawful(Bytes size, double time, const PrintedPlace& printed, bool sent_away) {
  if (printed.alg_half <= 0) return false;
  constexpr double kSlack = 0.02;
  constexpr double kKilo = 1e3;  // bytes / (GB/s) is in nanoseconds
  // (n - 1) / n of the size is at least half of it.
  const double least = static_cast<double>(size) / kKilo * (sent_away ? 0.5 : 1);
  const double most = static_cast<double>(size) / kKilo;
  const double late = (time + printed.time_half) * (1 + kSlack);
  const double early = (time - printed.time_half) * (1 - kSlack);
  return late * (printed.alg + printed.alg_half) >= least &&
         early * (printed.alg - printed.alg_half) <= most;
}

std::vector<RawTable> parts_of(RawTable raw) {
  for (LogRow& row : raw.rows) leave_out_unlawful(raw, row);
  say_choices(raw);
  const std::vector<OwnColumn> columns = own_columns(raw);
  const std::vector<LogRow> rows = std::move(raw.rows);
  raw.rows.clear();
  std::vector<RawTable> parts;
  std::map<std::tuple<std::string, std::string, int, std::string>, std::size_t> numbers;
  const auto part_of = [&](const LogRow& row) -> RawTable& {
    const std::string own = own_text(row, columns);
    const auto [found, added] =
        numbers.try_emplace(std::tuple(row.row.type, row.row.redop, row.root, own), parts.size());
    if (!added) return parts[found->second];
    RawTable& part = parts.emplace_back(raw);
    part.table.type = row.row.type;
    part.table.redop = row.row.redop;
    part.table.root = row.root;
    if (!own.empty()) part.table.own = own;
    if (parts.size() > 1) part.table.line = row.line;
    return part;
  };
  const auto first = std::ranges::find_if(rows, [](const auto& row) { return row.row.size > 0; });
  for (const LogRow& row : rows) {
    // A row without data fits any kind.
    const bool any = row.row.size <= 0 && first != rows.end();
    take_row(part_of(any ? *first : row), row);
  }
  return parts;
}

}  // namespace syncline::calibrate
