#include <memory>
#include <nlohmann/json.hpp>

#include "cli/modules/imports.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/predictors.h"
#include "formats/input/document.h"
#include "formats/json/text.h"
#include "imports/format.h"
#include "imports/scenario_of.h"
#include "reports/imported/import_report.h"
#include "studies/study/study.h"

namespace syncline::cli {
namespace {

struct ImportVerb {
  std::vector<std::string> files;
  std::string out;
  std::string cluster;
  std::int64_t batch = 0;
  Output output;
};

int run(const ImportVerb& options) {
  expect_writable({options.out, options.output.html});
  job::ImportOptions import;
  import.batch = options.batch;
  if (!options.cluster.empty()) import.cluster = read_json_file(options.cluster);
  reports::ImportedJob job;
  job.observed = job::read_job(options.files);
  job.imported = job::scenario_of(job.observed, import);
  job.out = options.out;
  // The written scenario must be correct: it is read as a user's file would be.
  const std::string text = job.imported.scenario.dump(2) + "\n";
  const std::string name = options.out.empty() ? "the imported scenario" : options.out;
  measure::StudyOptions study;
  study.make_executor = predictor_named(study.executor).make;
  study.trace = !options.output.html.empty();
  job.evaluated = measure::run_study(input::document_of(name, job.imported.scenario), study);
  write_answer({{options.out, [&] { return text; }}}, reports::answer_of(job), options.output);
  // The other forms have a place for warnings.
  if (options.output.format == reports::Format::kCsv) tell_warnings(job.observed.warnings);
  return 0;
}

}  // namespace

VerbAction add_import(CLI::App& verb) {
  auto options = std::make_shared<ImportVerb>();
  verb.add_option("files", options->files,
                  "a rank's file, or one file per rank; formats are detected")
      ->required();
  add_file(verb, "-o,--out", options->out, "write the scenario (JSON)");
  add_file(verb, "--cluster", options->cluster,
           "cluster (JSON) (default: the files' own, else assumed)");
  verb.add_option("--batch", options->batch,
                  "samples per rank and step, which traces do not contain")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  add_format(verb, options->output);
  add_html(verb, options->output);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
