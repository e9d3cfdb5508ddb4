#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/files.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "reports/html_page.h"

namespace syncline::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::string folder;
  std::string out;
};

// The folder's pages in the order of their names, without the one that is about to be written.
std::vector<reports::NamedPage> pages_in(const fs::path& folder, const fs::path& out) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".html" && entry.path().filename() != out.filename()) {
      paths.push_back(entry.path());
    }
  }
  if (error) throw InputError(folder.generic_string() + ": " + error.message());
  std::sort(paths.begin(), paths.end());
  std::vector<reports::NamedPage> pages;
  for (const auto& path : paths)
    pages.push_back({path.filename().string(), read_text_file(path.string(), "a page")});
  if (pages.empty()) {
    throw InputError(folder.generic_string() +
                     ": expected pages in it (NAME.html), as run, tune and others write them with "
                     "--html");
  }
  return pages;
}

int run(const ReportOptions& options) {
  const fs::path out =
      options.out.empty() ? fs::path(options.folder) / "report.html" : fs::path(options.out);
  const auto pages = pages_in(options.folder, out);
  expect_writable({out.string()});
  write_file(out.string(), reports::joined_pages(pages, version()));
  tell_written({out.string()});
  return 0;
}

}  // namespace

VerbAction add_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  auto* verb = app.add_subcommand("report", "Join the pages that --html wrote into one");
  verb->add_option("folder", options->folder, "where the pages are (*.html)")->required();
  verb->add_option("-o,--out", options->out,
                   "file for the page; report.html in the folder if left out");
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
