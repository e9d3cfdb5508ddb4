// `syncline` on a terminal of its own, as a person sees it.
#pragma once

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace syncline::test {

// What the program prints on a terminal of `columns`, without the carriage returns that a terminal
// adds; what it says on stderr is in `err`.
inline Ran run_on_terminal(const std::vector<std::string>& arguments, unsigned short columns,
                           const Variables& environment = {}, bool err_too = false) {
  const Scratch scratch;
  const std::string err = scratch.path("err");
  auto words = syncline_words(arguments);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid < 0) throw std::runtime_error("forkpty");
  if (pid == 0) {
    if (!err_too) ::dup2(::open(err.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644), STDERR_FILENO);
    ::unsetenv("COLUMNS");
    ::unsetenv("NO_COLOR");
    ::setenv("TERM", "xterm", 1);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  Ran ran;
  char block[4096];
  // Once the other end is closed there is an error to read.
  for (ssize_t got = 0; (got = ::read(terminal, block, sizeof block)) > 0;) {
    ran.out.append(block, static_cast<std::size_t>(got));
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (WIFEXITED(status)) ran.code = WEXITSTATUS(status);
  std::erase(ran.out, '\r');
  if (!err_too) ran.err = text_of(err);
  return ran;
}

}  // namespace syncline::test
