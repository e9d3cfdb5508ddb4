#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <string_view>

namespace syncline::cli {
namespace {

// Where std::cout writes from the start: what is redirected inside the process is no terminal.
const std::streambuf* const kOwnStdout = std::cout.rdbuf();
const std::streambuf* const kOwnStderr = std::cerr.rdbuf();

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::size_t terminal_width(int descriptor) {
  constexpr std::size_t kUsual = 80;
  const std::string_view told = variable("COLUMNS");
  std::size_t columns = 0;
  const auto read = std::from_chars(told.data(), told.data() + told.size(), columns);
  if (read.ec == std::errc() && columns > 0) return columns;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kUsual;
}

}  // namespace

reports::Screen stdout_screen(Colour colour) {
  const bool terminal = std::cout.rdbuf() == kOwnStdout && ::isatty(STDOUT_FILENO) == 1;
  reports::Screen screen;
  if (terminal) screen.width = terminal_width(STDOUT_FILENO);
  screen.colour = colour == Colour::kAuto
                      ? terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb"
                      : colour == Colour::kAlways;
  return screen;
}

std::size_t stderr_width() {
  const bool terminal = std::cerr.rdbuf() == kOwnStderr && ::isatty(STDERR_FILENO) == 1;
  return terminal ? terminal_width(STDERR_FILENO) : 0;
}

}  // namespace syncline::cli
