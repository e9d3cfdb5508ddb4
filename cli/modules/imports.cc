// Readers of jobs as a module: scenarios from traces, model files and frameworks' settings.
#include "cli/modules/imports.h"
#include "cli/modules.h"
#include "imports/format.h"
#include "imports/models/families.h"

extern "C" void syncline_module_imports(syncline::cli::ModuleRows& rows) {
  using namespace syncline;
  rows.verbs = {{"import", cli::add_import}, {"init", cli::add_init}};
  for (const auto& format : job::formats()) rows.formats.push_back({format.name, format.summary});
  for (const auto& [name, config] : job::models::named_configs()) {
    rows.models.push_back({name, config.at("model_type").get_ref<const std::string&>()});
  }
}
