#include <iostream>

#include "cli/verbs.h"
#include "core/collective/nccl.h"
#include "core/compress/codec.h"
#include "core/dialect/dialect.h"
#include "core/operators/architecture.h"
#include "reports/grid.h"

namespace syncline {
namespace {

std::string kinds_of(const Algorithm& algorithm) {
  constexpr int kRanks = 8;  // a power of two fits whatever can fit
  std::string kinds;
  for (const auto kind : kAllCollectiveKinds) {
    if (!algorithm.fits(kind, kRanks)) continue;
    kinds += (kinds.empty() ? "" : ", ") + std::string(to_string(kind));
  }
  return kinds;
}

int run() {
  Grid collectives{{{"algorithm", false}, {"collectives", false}, {"what it does", false}}, {}};
  for (const auto& algorithm : algorithms()) {
    collectives.lines.push_back(
        {{std::string(algorithm.name), kinds_of(algorithm), std::string(algorithm.summary)},
         false});
  }
  collectives.lines.push_back(
      {{std::string(kNcclName), kinds_of(*find_algorithm("ring")), std::string(kNcclSummary)},
       false});
  Grid codec_grid{{{"codec", false}, {"what it does", false}}, {}};
  for (const auto& codec : codecs()) {
    codec_grid.lines.push_back({{std::string(codec.name), std::string(codec.summary)}, false});
  }
  const Grid executors{
      {{"executor", false}, {"what it does", false}},
      {{{"model", "closed form: streams as queues, links shared fairly"}, false},
       {{"sim", "SimGrid: every link and rank, merged or step by step"}, false},
       {{"host", "moves real floats in memory: the truth for values and bytes, in tests"}, false}}};
  Grid dialect_grid{{{"dialect", false}, {"what it reads", false}}, {}};
  for (const auto& dialect : dialects()) {
    dialect_grid.lines.push_back(
        {{std::string(dialect.name), std::string(dialect.summary)}, false});
  }
  Grid architecture_grid{{{"architecture", false}, {"operators generated", false}}, {}};
  for (const auto& row : architectures()) {
    architecture_grid.lines.push_back({{std::string(row.name), std::string(row.summary)}, false});
  }
  std::cout << plain_grid(collectives) << "\n"
            << plain_grid(codec_grid) << "\n"
            << plain_grid(executors) << "\n"
            << plain_grid(dialect_grid) << "\n"
            << plain_grid(architecture_grid);
  return 0;
}

}  // namespace

VerbAction add_list(CLI::App& app) {
  app.add_subcommand("list", "List algorithms, codecs, executors, dialects and architectures");
  return [] { return run(); };
}

}  // namespace syncline
