#include <iostream>
#include <memory>

#include "cli/exit.h"
#include "cli/fidelity_tables.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/installed.h"
#include "core/measure/fidelity.h"
#include "core/measure/validation_file.h"
#include "reports/fidelity.h"
#include "reports/format.h"
#include "reports/live_rows.h"

namespace syncline::cli {
namespace {

struct FidelityOptions {
  std::string folder = scenarios_folder();
  std::vector<std::string> sets;
  OutputFormat format;
  std::vector<std::string> live;
  std::string html;
};

int run_live(const FidelityOptions& options) {
  std::vector<measure::LiveFile> files;
  for (const auto& name : options.live) files.push_back(measure::read_validation(name));
  const reports::Answer answer = reports::answer_of(files);
  answer_with({html_file(options.html, answer)}, [&] { print(answer, options.format); });
  return 0;
}

int run(const FidelityOptions& options) {
  expect_writable({options.html});
  if (!options.live.empty()) return run_live(options);
  const auto files = chosen(table_files(options.folder), options.sets);
  catch_interrupts();
  std::vector<measure::FidelityTable> tables;
  std::size_t done = 0;
  {
    Progress progress("syncline fidelity");
    for (const auto& file : files) {
      for (auto& table : tables_of(file)) tables.push_back(std::move(table));
      if (interrupted()) break;
      progress.update(++done, files.size());
    }
  }
  if (interrupted()) {
    std::cerr << "syncline: interrupted: " << done << " of " << files.size()
              << " files were read\n";
  }
  const reports::Answer answer = reports::answer_of(tables);
  answer_with({html_file(options.html, answer)}, [&] { print(answer, options.format); });
  return interrupted() ? kInterruptedExit : 0;
}

}  // namespace

VerbAction add_fidelity(CLI::App& app) {
  auto options = std::make_shared<FidelityOptions>();
  auto* verb = app.add_subcommand(
      "fidelity", "Reproduce published measurements and print how wrong the predictions are");
  verb->add_option("--set", options->sets,
                   "only this set of tables: documents, jobs, live, nccl-tests, papers, training; "
                   "may be repeated");
  verb->add_option("--from", options->folder,
                   "the scenarios folder; without it the working directory's, or else the one that "
                   "came with the program");
  verb->add_option("--live", options->live,
                   "reports of syncline validate (-o), instead: all of their rows in one table");
  add_format(*verb, options->format);
  add_html(*verb, options->html);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
