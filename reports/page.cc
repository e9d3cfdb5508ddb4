#include "reports/page.h"

#include <algorithm>

#include "formats/text/visible.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

std::string on_lines(const std::string& text, const Screen& screen, std::size_t indent = 0) {
  std::string lines;
  for (const auto& line : wrap(text, screen.width, indent)) lines += line + "\n";
  return lines;
}

std::string draw(const std::string& paragraph, const Screen& screen) {
  // A paragraph with line breaks of its own keeps them.
  std::string text;
  const std::string shown = visible(paragraph, "\n");
  for (std::size_t begin = 0; begin <= shown.size();) {
    const std::size_t end = std::min(shown.find('\n', begin), shown.size());
    text += on_lines(shown.substr(begin, end - begin), screen);
    begin = end + 1;
  }
  return text;
}

std::string draw(const Items& items, const Screen& screen) {
  constexpr std::size_t kBehindDash = 2;
  std::string text = paint(visible(items.heading, "\n"), Tone::kHeading, screen) + "\n";
  for (const auto& item : items.items) {
    text += on_lines("- " + one_line(item), screen, kBehindDash);
  }
  return text;
}

std::string draw(const Grid& grid, const Screen& screen) { return plain_grid(grid, screen); }

// Draws a plot unchanged down to its axis, or not at all if too wide; wraps the text below it.
std::string draw_plot(const std::string& text, const Screen& screen) {
  const std::size_t axis = text.find("+--");
  if (screen.width == 0 || axis == std::string::npos) return text;
  const std::size_t begin = text.rfind('\n', axis) + 1;  // 0 if there is none
  const std::size_t end = std::min(text.find('\n', axis), text.size());
  const std::size_t taken = end - begin;
  if (taken > screen.width) {
    const std::string told = "A plot is left out: it takes " + std::to_string(taken) + " columns.";
    return paint(told, Tone::kFaint, screen) + "\n";
  }
  return text.substr(0, end) + "\n" +
         wrapped_lines(text.substr(std::min(end + 1, text.size())), screen.width);
}

// Draws a configuration unchanged, and wraps prose.
std::string draw(const Listing& listing, const Screen& screen) {
  const std::string text = visible(listing.text, "\n");
  if (listing.plot) return draw_plot(text, screen);
  return listing.language != "text" ? text : wrapped_lines(text, screen.width);
}

std::string title_of(const Page& page, const Screen& screen) {
  std::string text;
  const std::string title = page.title + (page.about.empty() ? "" : ": " + page.about);
  for (const auto& line : wrap(one_line(title), screen.width)) {
    text += paint(line, Tone::kHeading, screen) + "\n";
  }
  return text;
}

std::string block_text(const std::string& paragraph) { return markdown_text(paragraph) + "\n"; }

std::string block_text(const Items& items) {
  std::string text = markdown_text(items.heading) + "\n\n";
  for (const auto& item : items.items) text += "- " + markdown_text(item) + "\n";
  return text;
}

std::string block_text(const Grid& grid) { return markdown_grid(grid); }

std::string block_text(const Listing& listing) {
  return "```" + listing.language + "\n" + listing.text + "```\n";
}

}  // namespace

void Page::add(const std::string& paragraph) {
  if (!paragraph.empty()) blocks.emplace_back(paragraph);
}

void Page::add(Items items) {
  if (!items.items.empty()) blocks.emplace_back(std::move(items));
}

void Page::add(const Table& table) { add(grid_of(table)); }

std::string text_page(const Page& page, const Screen& screen) {
  std::string text = page.title.empty() ? "" : title_of(page, screen);
  for (const auto& block : page.blocks) {
    if (!text.empty()) text += "\n";
    text += std::visit([&](const auto& b) { return draw(b, screen); }, block);
  }
  return text;
}

std::string markdown_page(const Page& page) {
  std::string text = "# " + markdown_text(page.title) + "\n";
  if (!page.about.empty()) text += "\n" + markdown_text(page.about) + "\n";
  for (const auto& block : page.blocks) {
    text += "\n" + std::visit([](const auto& b) { return block_text(b); }, block);
  }
  return text;
}

}  // namespace syncline::reports
