#include "cli/run_files.h"

#include <utility>

#include "cli/verbs.h"
#include "reports/trace.h"

namespace syncline::cli {
namespace {

constexpr std::pair<const char*, reports::Format> kReports[] = {
    {"report.txt", reports::Format::kTable},
    {"report.md", reports::Format::kMarkdown},
    {"rows.csv", reports::Format::kCsv},
    {"report.json", reports::Format::kJson}};
constexpr const char* kTrace = "trace.json";

// The files of --out, each in the folder.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  if (folder.empty()) return files;
  for (const auto& [name, format] : kReports) files.push_back(folder + "/" + name);
  files.push_back(folder + "/" + kTrace);
  return files;
}

}  // namespace

void expect_writable_files(const RunOptions& options) {
  if (!options.out.empty()) make_folder(options.out);
  expect_writable({options.trace, options.html});
  expect_writable(files_in(options.out));
}

std::vector<SideFile> side_files(const RunOptions& options, const measure::Report& traced,
                                 const reports::Answer& answer) {
  const auto trace = [&traced] { return reports::chrome_trace(traced); };
  std::vector<SideFile> files{{options.trace, trace}, html_file(options.html, answer)};
  if (options.out.empty()) return files;
  for (const auto& [name, format] : kReports) {
    files.push_back({options.out + "/" + name, [&answer, form = format] {
                       return reports::printed(answer, form, version());
                     }});
  }
  files.push_back({options.out + "/" + kTrace, trace});
  return files;
}

}  // namespace syncline::cli
