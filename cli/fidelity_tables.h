// The published tables that `syncline fidelity` holds its predictions against.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/measure/fidelity.h"

namespace syncline::cli {

// Published tables are scenarios in published/, a set for each folder; the logs of nccl-tests that
// others have published are compared as a list beside them says.
struct TableFile {
  std::string set;
  std::filesystem::path path;
  bool logs = false;
  bool live = false;
};

// All tables below the scenarios folder, set by set, in alphabetical order. Throws InputError where
// there is no such folder.
std::vector<TableFile> table_files(const std::string& folder);

// Those of the sets asked for, or all. Throws InputError for an unknown set.
std::vector<TableFile> chosen(std::vector<TableFile> files, const std::vector<std::string>& sets);

// The tables of one file, predicted anew; none after an interrupt.
std::vector<measure::FidelityTable> tables_of(const TableFile& file);

}  // namespace syncline::cli
