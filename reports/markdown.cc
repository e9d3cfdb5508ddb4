#include "reports/markdown.h"

namespace syncline::reports {
namespace {

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

std::string markdown_page(const Page& page) {
  std::string text = "# " + markdown_text(page.title) + "\n";
  if (!page.about.empty()) text += "\n" + markdown_text(page.about) + "\n";
  for (const auto& block : page.blocks) {
    text += "\n" + std::visit([](const auto& b) { return block_text(b); }, block);
  }
  return text;
}

}  // namespace syncline::reports
