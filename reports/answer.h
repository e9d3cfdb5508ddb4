// What a verb answers, in every form in which it can be printed: a table for the terminal,
// Markdown, CSV for spreadsheets, JSON for programs. A verb's report says what there is to say;
// this prints it in the form that was asked for.
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

// table, markdown, csv, json: the words of --format, in the order of the enumeration.
const std::vector<std::string>& format_words();
// Requires one of these words.
Format format_of(std::string_view word);

// The forms are made when they are printed: a million rows need not stand in memory three times
// over. What is answered must outlive the answer.
struct Answer {
  std::string verb;
  std::string scenario;  // its name; empty where no scenario was read
  std::function<Page()> page;
  std::function<Table()> rows;  // what CSV has
  // Its own members, without the head: answers.json (`syncline schema --answers`) names them. What
  // does not apply is left out.
  std::function<Json()> json;
  // What is allowed in the scenario and rarely meant: items at the end of the page, "remarks" in
  // JSON. Suspicious ones (studies/warnings/warnings.h) come before everything else on the page,
  // and are "doubts" in JSON too. A CSV has no place for them, whoever prints it says them
  // elsewhere.
  std::vector<std::string> warnings = {};
  // What a page shows before the words; none: no figures.
  std::function<std::vector<Illustration>()> figures = {};
  // What a terminal shows unless the whole page is asked for: the answer itself, in some 25 lines.
  // It ends with a paragraph that names where the figures come from. None: always the whole page.
  std::function<Page()> brief = {};
  std::string lead = {};  // the verdict, where there is no brief page that begins with it
};

// Returns the answer of a report, which must outlive it, by the functions that give its forms.
template <typename Report>
Answer answered(
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

// The version of the JSON's form: raised when a member changes its meaning or goes.
inline constexpr int kJsonFormat = 2;

// JSON begins with the same head for all verbs: syncline (the version), format, verb and, where
// there is one, scenario. The same answer gives the same bytes. The screen is the table's alone.
std::string printed(const Answer& answer, Format format, const std::string& version,
                    const Screen& screen = {});

// The same before they are written: the blocks with the warnings, the object with its head.
Page whole_page(const Answer& answer);
// Returns the verdict, and the other sentences of the brief page; none where there is neither.
std::vector<std::string> lead_of(const Answer& answer);
Page brief_page(const Answer& answer);
Json whole_json(const Answer& answer, const std::string& version);

// An answer as one page that needs nothing else: opens from disk, loads nothing, can be read and
// printed without its script. Its figures first, then what the terminal shows, then the answer's
// JSON for programs.

// So that a page stays under 2 MB: lines of a table, and bytes of JSON. What is left out is said.
inline constexpr std::size_t kPageLines = 400;
inline constexpr std::size_t kPageJson = 700'000;

// The same answer gives the same bytes. Everything that comes from a file is escaped.
std::string html_page(const Answer& answer, const std::string& version);

// What gives the figures of a page hover and zoom: reports/page.js, as the build put it into the
// program.
std::string_view page_script();

}  // namespace syncline::reports
