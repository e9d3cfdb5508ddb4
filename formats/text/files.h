// Files and what else a path may name: pipes, devices, links. Reading never waits for ever, and
// writing never puts a file in the place of something else.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "formats/text/limits.h"

namespace syncline {

// How long the other end of a named pipe has to come.
inline constexpr std::chrono::milliseconds kPipeWaitLimit{5000};

// The whole file, at most `most` bytes; `kind` says in messages what was expected ("a JSON file").
// Throws InputError for one that is missing, a folder, too large, not to be opened, or a pipe into
// which nobody writes.
std::string read_text_file(const std::string& path, std::string_view kind,
                           long long most = kLargestFile,
                           std::chrono::milliseconds wait_limit = kPipeWaitLimit);

// Remembers a file that is read in another way: read_text_file does by itself. What was read is not
// written any more (write_file, expect_writable), by whatever name, until it `may_be_replaced`, or
// all is forgotten: a new command begins.
void note_read(const std::string& path);
void may_be_replaced(const std::string& path);
void forget_what_was_read();

// Throws InputError where two paths of a command's outputs lead to one file, whose first content
// would be lost. Empty ones are none.
void expect_different(const std::vector<std::string>& paths);

// All of standard input, at most kLargestFile bytes. Throws InputError.
std::string read_standard_input();

// A file is there whole or not at all: written beside `path` and renamed, with the mode and, where
// that is allowed, the owner of the file that was there. A link stays, the file that it leads to is
// written. A device, a pipe and what /dev/stdout or /dev/fd/N names is written into. Throws
// MachineError naming the path, InputError where that was read; an old file is kept then.
void write_file(const std::string& path, const std::string& content,
                std::chrono::milliseconds wait_limit = kPipeWaitLimit);

// Throws what write_file would, as far as it can be known without writing: before long work.
void expect_writable(const std::string& path);

}  // namespace syncline
