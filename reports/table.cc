#include "reports/table.h"

#include "reports/format.h"

namespace syncline::reports {
namespace {

std::string draw(const std::string& paragraph) { return paragraph + "\n"; }

std::string draw(const Items& items) {
  std::string text = items.heading + "\n";
  for (const auto& item : items.items) text += "- " + one_line(item) + "\n";
  return text;
}

std::string draw(const Grid& grid) { return plain_grid(grid); }

std::string draw(const Listing& listing) { return listing.text; }

}  // namespace

std::string text_page(const Page& page) {
  std::string text = page.title + (page.about.empty() ? "" : ": " + page.about) + "\n";
  for (const auto& block : page.blocks) {
    text += "\n" + std::visit([](const auto& b) { return draw(b); }, block);
  }
  return text;
}

}  // namespace syncline::reports
