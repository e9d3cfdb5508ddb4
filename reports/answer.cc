#include "reports/answer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/text/visible.h"
#include "reports/format.h"
#include "reports/page.h"
#include "reports/table.h"
#include "studies/warnings/warnings.h"

namespace syncline::reports {

std::vector<std::string> lead_of(const Answer& answer) {
  std::vector<std::string> lead;
  if (!answer.lead.empty()) lead.push_back(answer.lead);
  if (!answer.brief) return lead;
  for (const Block& block : answer.brief().blocks) {
    if (const auto* text = std::get_if<std::string>(&block)) lead.push_back(*text);
  }
  if (!lead.empty()) lead.pop_back();  // the sources of the figures
  return lead;
}

namespace {

// Puts suspicious warnings before everything else on the page, and returns the others.
std::vector<std::string> put_suspicious(const Answer& answer, Page& page) {
  std::vector<std::string> warnings = answer.warnings;
  const std::vector<std::string> suspicious = measure::take_suspicious(warnings);
  if (!suspicious.empty()) page.blocks.insert(page.blocks.begin(), Items{"Doubtful:", suspicious});
  return warnings;
}

}  // namespace

Page whole_page(const Answer& answer) {
  Page page = answer.page();
  if (const auto lead = lead_of(answer); !lead.empty()) {
    std::erase_if(page.blocks, [&](const Block& block) {
      const auto* text = std::get_if<std::string>(&block);
      return text != nullptr && *text == lead.front();
    });
    page.blocks.insert(page.blocks.begin(), lead.front());
  }
  page.add(Items{"Notes:", put_suspicious(answer, page)});
  return page;
}

Page brief_page(const Answer& answer) {
  Page page = answer.brief();
  const std::vector<std::string> warnings = put_suspicious(answer, page);
  auto* last = page.blocks.empty() ? nullptr : std::get_if<std::string>(&page.blocks.back());
  if (last == nullptr) last = &std::get<std::string>(page.blocks.emplace_back(std::string()));
  if (!last->empty()) *last += " ";
  *last += warnings.empty() ? "Details: --verbose."
                            : plural(warnings.size(), "note") + " and details: --verbose.";
  return page;
}

Json whole_json(const Answer& answer, const std::string& version) {
  Json object{{"syncline", version}, {"format", kJsonFormat}, {"verb", answer.verb}};
  if (!answer.scenario.empty()) object["scenario"] = answer.scenario;
  object.update(answer.json());
  std::vector<std::string> warnings = answer.warnings;
  const std::vector<std::string> suspicious = measure::take_suspicious(warnings);
  if (!suspicious.empty()) object["doubts"] = suspicious;
  warnings.insert(warnings.begin(), suspicious.begin(), suspicious.end());
  if (!warnings.empty()) object["remarks"] = warnings;
  return object;
}

const std::vector<std::string>& format_words() {
  static const std::vector<std::string> words{"table", "markdown", "csv", "json"};
  return words;
}

Format format_of(std::string_view word) {
  const auto& words = format_words();
  return static_cast<Format>(std::find(words.begin(), words.end(), word) - words.begin());
}

std::string format_answer(const Answer& answer, Format format, const std::string& version,
                          const Screen& screen) {
  switch (format) {
    case Format::kTable:
      return text_page(screen.brief && answer.brief ? brief_page(answer) : whole_page(answer),
                       screen);
    case Format::kMarkdown:
      return visible(markdown_page(whole_page(answer)), "\n");
    case Format::kCsv:
      return csv_text(answer.rows());
    case Format::kJson:
      // A name may hold any bytes: invalid UTF-8 is replaced, without an exception.
      return whole_json(answer, version).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return {};
}

}  // namespace syncline::reports
