// Files and other targets of a path: pipes, devices, links. Reading never waits for ever, and
// writing never replaces anything else by a file.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "formats/text/limits.h"

namespace syncline {

// Time limit for the other end of a named pipe to open.
inline constexpr std::chrono::milliseconds kPipeWaitLimit{5000};

// Returns the whole file, at most `most` bytes; `kind` names the expected file in messages ("a JSON
// file"). Throws InputError if it is missing, a folder, too large, cannot be opened, or is a pipe
// without a writer.
std::string read_text_file(const std::string& path, std::string_view kind,
                           long long most = kLargestFile,
                           std::chrono::milliseconds wait_limit = kPipeWaitLimit);

// Opens a file to read; its owner closes the descriptor. Remembers it as note_read does. Throws
// InputError if it is missing, a folder, cannot be opened, or waits for input without an end, as
// the kernel's log does.
int open_to_read(const std::string& path, std::string_view kind);

// Remembers a file that was read; read_text_file and open_to_read call it. Such a file is not
// written (write_file, expect_writable), by any name, until `may_be_replaced`, or until a new
// command calls forget_what_was_read.
void note_read(const std::string& path);
void may_be_replaced(const std::string& path);
void forget_what_was_read();

// Throws InputError if two output paths of a command lead to one file: its first content would be
// lost. Ignores empty paths.
void expect_different(const std::vector<std::string>& paths);

// Returns all of standard input, at most kLargestFile bytes. Throws InputError.
std::string read_standard_input();

// Writes a whole file or none: to a temporary file that is renamed to `path`, with the old file's
// mode and, if allowed, owner. A link stays and its target is written. Writes directly into a
// device, a pipe, and /dev/stdout or /dev/fd/N. Throws MachineError naming the path, InputError if
// that was read; an old file is kept then.
void write_file(const std::string& path, const std::string& content,
                std::chrono::milliseconds wait_limit = kPipeWaitLimit);

// Checks, without writing, that write_file(path) can succeed. Call it before long work.
void expect_writable(const std::string& path);

}  // namespace syncline
