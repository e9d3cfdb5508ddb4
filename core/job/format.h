// The formats that a job can be imported from. Each lives in a folder of its own and is one row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/observed.h"

namespace syncline::job {

// What a format is recognised by.
struct Head {
  std::string path;  // as the user named it
  bool directory = false;
  std::string bytes;  // the first 64 KiB, unpacked where gzip packed them
};

struct ImportFormat {
  std::string_view name;     // "kineto"
  std::string_view summary;  // one line for `syncline list`
  bool (*recognises)(const Head& head);
  // Reads all files of one job (one a rank, where a rank has its own). Throws InputError, naming
  // the file, for what is damaged, foreign or tells too little, with what to record instead.
  Observed (*read)(const std::vector<std::string>& files);
};

std::span<const ImportFormat> formats();

// Reads the files by the format of the first; the others must be of the same. Throws InputError
// naming the formats that are known where none recognises it.
Observed read_job(const std::vector<std::string>& files);

}  // namespace syncline::job
