#include "reports/answer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "reports/chart/figure.h"
#include "reports/chart/markup.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

using chart::escape;

constexpr std::string_view kData = "<script type=\"application/json\" class=\"data\">";
std::string style() {
  return ":root{color-scheme:light dark;--paper:#fff;--ink:#1a1a1a;--thin:#ddd;--soft:#f4f5f7;"
         "--link:#005a9c}"
         "@media screen and (prefers-color-scheme:dark){:root{--paper:#16191d;--ink:#e6e6e6;"
         "--thin:#3a4048;--soft:#20252b;--link:#7cc0ff}}\n"
         "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 sans-serif}"
         "main,nav{max-width:1000px;margin:0 auto;padding:12px 16px}"
         "h1{font-size:22px;margin:.4em 0 .1em}h2{font-size:17px;margin:1.6em 0 .2em}"
         "h1,h2,p,li,figcaption{overflow-wrap:anywhere}"
         "a{color:var(--link)}p.note{margin:.1em 0 .4em;opacity:.85;font-size:13px}"
         "figure{margin:0;overflow-x:auto}figure>svg{display:block;width:100%;min-width:760px}"
         ".table{overflow-x:auto;margin:.6em 0}table{border-collapse:collapse;font-size:13px;"
         "font-variant-numeric:tabular-nums}"
         "th,td{padding:2px 8px;text-align:left;vertical-align:top}"
         "th{border-bottom:1px solid var(--ink);white-space:pre-line}td{white-space:nowrap}"
         "td.long{white-space:normal;overflow-wrap:anywhere;min-width:16em}"
         ".r{text-align:right}tr.best{font-weight:bold}tr.rule td{border-top:1px solid var(--thin)}"
         "tr:target td{background:var(--soft);outline:1px solid var(--link)}"
         "pre{background:var(--soft);padding:8px;overflow-x:auto;font-size:12px}"
         ".zoom{position:sticky;left:0;text-align:right;margin:0 0 2px}"
         ".zoom button{min-width:2.2em;margin-left:3px;background:var(--soft);color:var(--ink);"
         "border:1px solid var(--thin);border-radius:3px;font:12px sans-serif;padding:2px 6px}"
         ".zoom button:disabled{opacity:.4}.plot{touch-action:pan-x pan-y;user-select:none}"
         "#tip{position:fixed;z-index:9;max-width:28em;padding:4px 8px;pointer-events:none;"
         "background:var(--ink);color:var(--paper);border-radius:3px;font:12px/1.4 sans-serif;"
         "white-space:pre-line;overflow-wrap:anywhere}"
         "@media print{.zoom,#tip{display:none}figure,tr{break-inside:avoid}"
         "h2{break-after:avoid}figure>svg{min-width:0}.table{overflow:visible}"
         "table{font-size:8px}td{white-space:normal}body{font-size:11px}}\n";
}

std::string head(const std::string& title, const std::string& version) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"generator\" content=\"syncline " +
         escape(version) +
         "\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>" +
         escape(title) + "</title>\n<style>\n" + style() + chart::palette_css() +
         "</style>\n</head>\n<body>\n";
}

std::string foot() {
  return "<script>\n" + std::string(page_script()) + "</script>\n</body>\n</html>\n";
}

// Blocks ---------------------------------------------------------------------------------------

// Letters of the longest cell that never wraps.
constexpr std::size_t kLong = 60;

std::string cell(const std::string& text, bool right) {
  const bool wraps = chart::letters_of(text) > kLong;
  return "<td" +
         std::string(wraps   ? " class=\"long\""
                     : right ? " class=\"r\""
                             : "") +
         ">" + escape(text) + "</td>";
}

// Writes a table. `ids`: of its lines, or empty.
std::string table(const Grid& grid, const std::vector<std::string>& ids) {
  std::string html = "<div class=\"table\"><table>\n<thead><tr>";
  for (const auto& column : grid.columns) {
    html += std::string("<th") + (column.right ? " class=\"r\"" : "") + ">" +
            escape(column.heading, "\n") + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  const auto named = std::ranges::find(grid.columns, "strategy", &Grid::Column::heading);
  const auto name = named == grid.columns.end() ? 0 : named - grid.columns.begin();
  const std::size_t lines = std::min(grid.lines.size(), kPageLines);
  for (std::size_t i = 0; i < lines; ++i) {
    const Grid::Line& line = grid.lines[i];
    html += "<tr";
    if (i < ids.size() && !ids[i].empty()) html += " id=\"" + escape(ids[i]) + "\"";
    const bool best = line.tone == Tone::kBest;
    const std::string css = std::string(line.rule_before ? " rule" : "") + (best ? " best" : "");
    html += css.empty() ? ">" : " class=\"" + css.substr(1) + "\">";
    for (std::size_t c = 0; c < line.cells.size(); ++c) {
      const char* star = best && std::cmp_equal(c, name) ? chart::kStar : "";
      html += cell(star + line.cells[c], grid.columns[c].right);
    }
    html += "</tr>\n";
  }
  html += "</tbody>\n</table></div>\n";
  if (lines < grid.lines.size()) {
    html += "<p class=\"note\">The first " + std::to_string(lines) + " of " +
            plural(grid.lines.size(), "line") + "; --format csv and json have all.</p>\n";
  }
  return html;
}

std::string draw(const Grid& grid) { return table(grid, {}); }

std::string draw(const std::string& paragraph) {
  std::string html;
  std::istringstream lines(paragraph);
  for (std::string line; std::getline(lines, line);) html += "<p>" + escape(line) + "</p>\n";
  return html;
}

std::string draw(const Items& items) {
  std::string html = "<p>" + escape(items.heading) + "</p>\n<ul>\n";
  for (const auto& item : items.items) html += "<li>" + escape(item) + "</li>\n";
  return html + "</ul>\n";
}

std::string draw(const Listing& listing) {
  if (listing.plot) return "";
  return "<pre>" + escape(listing.text, "\n") + "</pre>\n";
}

std::string draw(const Illustration& picture) {
  const chart::Figure& figure = picture.figure;
  std::string html =
      "<section id=\"" + escape(figure.id) + "\">\n<h2>" + escape(figure.title) + "</h2>\n";
  if (!figure.note.empty()) html += "<p class=\"note\">" + escape(figure.note) + "</p>\n";
  html += "<figure>\n" + chart::svg_inline(figure) + "</figure>\n";
  if (!picture.heading.empty()) {
    html += "<details><summary>" + escape(picture.heading) + "</summary>\n" +
            table(picture.details, picture.ids) + "</details>\n";
  }
  return html + "</section>\n";
}

// The answer's JSON ----------------------------------------------------------------------------

// Cuts long lists to their beginning, and counts the items that are left out.
void shorten(Json& object) {
  const std::size_t whole = object.dump(-1, ' ', false, Json::error_handler_t::replace).size();
  if (whole <= kPageJson) return;
  Json left_out = Json::object();
  for (auto& [name, member] : object.items()) {
    const std::size_t size = member.dump(-1, ' ', false, Json::error_handler_t::replace).size();
    if (size < kPageJson / 4) continue;
    if (!member.is_array()) {
      left_out[name] = "all";
      member = nullptr;
      continue;
    }
    const std::size_t kept = member.size() * (kPageJson / 4) / size;
    left_out[name] = member.size() - kept;
    member.erase(member.begin() + static_cast<std::ptrdiff_t>(kept), member.end());
  }
  object["left_out"] = std::move(left_out);
}

// Returns the answer's JSON as a script. Each '<' is escaped: "</script" would end it.
std::string data(const Answer& answer, const std::string& version) {
  Json object = whole_json(answer, version);
  shorten(object);
  const std::string text = object.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  for (const char letter : text) safe += letter == '<' ? "\\u003c" : std::string(1, letter);
  return std::string(kData) + safe + "</script>\n";
}

bool is_plot(const Block& block) {
  const auto* listing = std::get_if<Listing>(&block);
  return listing != nullptr && listing->plot;
}

std::string main_part(const Answer& answer, const std::string& version) {
  const Page page = whole_page(answer);
  std::string html = "<main>\n<h1>" + escape(page.title) + "</h1>\n";
  if (!page.about.empty()) html += "<p>" + escape(page.about) + "</p>\n";
  const auto lead = lead_of(answer);
  for (const auto& sentence : lead) html += draw(sentence);
  if (answer.figures) {
    for (const auto& picture : answer.figures()) html += draw(picture);
  }
  html += "<h2>In words and figures</h2>\n";
  for (std::size_t i = 0; i < page.blocks.size(); ++i) {
    // A figure replaces the plot that these words introduce.
    const auto* text = std::get_if<std::string>(&page.blocks[i]);
    const bool leads = text != nullptr && text->ends_with(":");
    if (text != nullptr && std::ranges::find(lead, *text) != lead.end()) continue;  // printed above
    if (leads && i + 1 < page.blocks.size() && is_plot(page.blocks[i + 1])) continue;
    html += std::visit([](const auto& b) { return draw(b); }, page.blocks[i]);
  }
  html += "<p class=\"note\">syncline " + escape(version) + " " + escape(answer.verb) + "</p>\n";
  return html + data(answer, version) + "</main>\n";
}

}  // namespace

std::string html_page(const Answer& answer, const std::string& version) {
  return head(whole_page(answer).title, version) + main_part(answer, version) + foot();
}

}  // namespace syncline::reports
