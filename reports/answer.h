// The answer of a verb in each printed form: a table for the terminal, Markdown, CSV for
// spreadsheets, JSON for programs. A verb's report provides the content.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "formats/json/json.h"
#include "reports/page.h"

namespace syncline::reports {

struct Table;

enum class Format { kTable, kMarkdown, kCsv, kJson };

// Returns the words of --format in the order of the enumeration: table, markdown, csv, json.
const std::vector<std::string>& format_words();
// Returns the format that a word names. Requires one of format_words().
Format format_of(std::string_view word);

// Functions that make an answer's forms when they are printed: a million rows need not be in memory
// three times. The report must outlive its answer.
struct Answer {
  std::string verb;
  std::string scenario;  // its name; empty if no scenario was read
  std::function<Page()> page;
  std::function<Table()> rows;  // for CSV
  // Returns the answer's members without the head, as answers.json names them (`syncline schema
  // --answers`). Members that do not apply are absent.
  std::function<Json()> json;
  // Settings that are allowed in the scenario and rarely meant: items at the end of the page,
  // "remarks" in JSON. Suspicious ones (studies/warnings/warnings.h) come first on the page, and
  // are "doubts" in JSON too. A CSV has none of them: the caller prints them elsewhere.
  std::vector<std::string> warnings = {};
  // Returns the figures that a page shows before the words; empty: no figures.
  std::function<std::vector<Illustration>()> figures = {};
  // Returns the short page of a terminal, some 25 lines; unset: always the whole page. The page
  // ends with a paragraph that names the sources of its figures.
  std::function<Page()> brief = {};
  std::string lead = {};  // the verdict, if there is no brief page that begins with it
};

// Returns the answer of a report, which must outlive it, by the functions that give its forms.
template <typename Report>
Answer make_answer(
    std::string verb, std::string scenario, const Report& report,
    Page (*page)(const std::type_identity_t<Report>&),
    Table (*rows)(const std::type_identity_t<Report>&),
    Json (*json)(const std::type_identity_t<Report>&), std::vector<std::string> warnings = {},
    std::vector<Illustration> (*figures)(const std::type_identity_t<Report>&) = nullptr) {
  Answer answer{std::move(verb),
                std::move(scenario),
                [&report, page] { return page(report); },
                [&report, rows] { return rows(report); },
                [&report, json] { return json(report); },
                std::move(warnings)};
  if (figures != nullptr) answer.figures = [&report, figures] { return figures(report); };
  return answer;
}

// Version of the JSON's form: raised when a member changes its meaning or goes.
inline constexpr int kJsonFormat = 2;

// Returns the answer as text of that format; the same answer gives the same bytes. All JSON begins
// with syncline (the version), format, verb and, if any, scenario. Only tables use the screen.
std::string format_answer(const Answer& answer, Format format, const std::string& version,
                          const Screen& screen = {});

// Returns the page with its warnings, before it is drawn.
Page whole_page(const Answer& answer);
// Returns the verdict and the other sentences of the brief page; empty if there is neither.
std::vector<std::string> lead_of(const Answer& answer);
Page brief_page(const Answer& answer);
Json whole_json(const Answer& answer, const std::string& version);

// An answer as one page that needs no other file: it opens from disk, and can be read and printed
// without its script. First its figures, then the terminal's text, then the answer's JSON.

// Limits that keep a page below 2 MB: lines of a table, bytes of JSON. The page notes omissions.
inline constexpr std::size_t kPageLines = 400;
inline constexpr std::size_t kPageJson = 700'000;

// Returns the page; the same answer gives the same bytes. All text from files is escaped.
std::string html_page(const Answer& answer, const std::string& version);

// Returns reports/page.js, which gives figures of a page hover and zoom; the build embeds it.
std::string_view page_script();

}  // namespace syncline::reports
