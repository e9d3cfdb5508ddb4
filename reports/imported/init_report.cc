#include "reports/imported/init_report.h"

#include <nlohmann/json.hpp>

#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

Page page_of(const job::Begun& begun) {
  Page page{one_line(begun.scenario["name"].get<std::string>()), "", {}};
  page.add(Items{"Assumed:", begun.assumed});
  return page;
}

Table table_of(const job::Begun& begun) {
  Table table{columns(table_column("assumed", "assumed"))};
  for (const std::string& line : begun.assumed) table.add(line);
  return table;
}

Json json_of(const job::Begun& begun) {
  Json rows = Json::array();
  for (const Json& strategy : begun.scenario["strategies"]) {
    rows.push_back({{"name", strategy["name"]}});
  }
  return {{"strategies", std::move(rows)}, {"assumed", begun.assumed}};
}

}  // namespace

Answer answer_of(const job::Begun& begun) {
  return make_answer("init", begun.scenario["name"].get<std::string>(), begun, page_of, table_of,
                     json_of);
}

}  // namespace syncline::reports
