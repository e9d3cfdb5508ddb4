// syncline._core: what the functions of the package ask. The work is done in a process of its own:
// Ctrl-C ends it at any moment, one that crashes is a MachineError, as many as there are threads go
// on at once, and other threads of the interpreter run meanwhile. Python's stable interface alone
// is used: one build serves every Python from 3.9 on.
#include <Python.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio_ext.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/visible.h"
#include "python/verbs.h"

namespace syncline::python {
namespace {

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The kind is `input` or `machine`.
std::string failure(const char* kind, const std::string& message,
                    const std::vector<std::string>& below = {}) {
  // The program prints messages likewise: echoed words cut in the middle, no control characters.
  constexpr std::size_t kLongest = 900;
  const auto shown = [](const std::string& text) {
    return shorten_middle(visible(text), kLongest);
  };
  std::vector<std::string> lines;
  for (const std::string& line : below) lines.push_back(shown(line));
  return text_of(Json{{"failed", kind}, {"message", shown(message)}, {"below", lines}});
}

// Returns the answer, or the failure.
std::string answered(const std::string& verb, const std::string& arguments) {
  try {
    return text_of(answer(verb, parse_json_text(verb + "()", arguments)));
  } catch (const InputMistakes& error) {
    return failure("input", error.what(), error.below);
  } catch (const InputError& error) {
    return failure("input", error.what());
  } catch (const MachineError& error) {
    return failure("machine", error.what());
  } catch (const std::bad_alloc&) {
    return failure("machine", "out of memory");
  } catch (const std::filesystem::filesystem_error& error) {
    return failure("machine", error.path1().string() + ": " + error.code().message());
  } catch (const std::exception& error) {
    return failure("machine", std::string("a failure that was not foreseen: ") + error.what());
  }
}

// The life of the new process. Nothing of the interpreter is touched: its locks may be held by
// threads that are not here, its handlers write into files that both processes have.
[[noreturn]] void serve(int answers, pid_t parent, const std::function<std::string()>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // it went before the line above
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t interrupt;  // the parent's to handle
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  ::pthread_sigmask(SIG_SETMASK, &interrupt, nullptr);
  // A pipe of the parent's ends for its reader only when no process holds the other end.
  const auto own = static_cast<unsigned>(answers);
  if (own > STDERR_FILENO + 1) ::close_range(STDERR_FILENO + 1, own - 1, 0);
  ::close_range(own + 1, ~0U, 0);
  ::__fpurge(stdout);  // what is still buffered is the parent's to write
  const std::string text = work();
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(answers, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  // No destructors: they belong to the parent's copy of everything.
  ::_exit(0);
}

// Whoever lets go of it ends it.
class Process {
 public:
  explicit Process(const std::function<std::string()>& work) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) failed("pipe");
    const pid_t parent = ::getpid();
    sigset_t all;  // held back until the new process has no handlers of the interpreter
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    process_ = ::fork();
    if (process_ == 0) serve(ends[1], parent, work);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::close(ends[1]);
    answers_ = ends[0];
    if (process_ < 0) {
      ::close(answers_);
      failed("fork");
    }
  }
  ~Process() {
    ::close(answers_);
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Takes what has come within some time into `text`; false at the end of it.
  bool take(std::string& text) {
    constexpr int kMilliseconds = 50;  // a signal may have come to another thread
    pollfd waits{answers_, POLLIN, 0};
    if (::poll(&waits, 1, kMilliseconds) <= 0) return true;
    char block[1 << 16];
    const ssize_t got = ::read(answers_, block, sizeof block);
    if (got > 0) text.append(block, static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && errno == EINTR);
  }

  // Returns how it ended: the signal, or 0. One that somebody else has waited for has ended well.
  int wait() {
    int status = 0;
    pid_t ended = 0;
    do {
      ended = ::waitpid(process_, &status, 0);
    } while (ended < 0 && errno == EINTR);
    process_ = -1;
    return ended > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  [[noreturn]] static void failed(const char* call) {
    throw MachineError(std::string(call) + ": " + std::strerror(errno));
  }

  pid_t process_ = -1;
  int answers_ = -1;
};

// Other threads of the interpreter run while it waits; a signal's handler runs between two waits.
// Returns nothing, with Python's error set, where one raised.
std::optional<std::string> ask(const std::string& verb, const std::string& arguments) {
  try {
    Process process([&] { return answered(verb, arguments); });
    std::string text;
    for (bool more = true; more;) {
      PyThreadState* const own = PyEval_SaveThread();
      more = process.take(text);
      PyEval_RestoreThread(own);
      if (PyErr_CheckSignals() != 0) return std::nullopt;
    }
    const int signal = process.wait();
    if (signal != 0) {
      return failure("machine", "its process was ended by signal " + std::to_string(signal) + " (" +
                                    ::strsignal(signal) + ")");
    }
    return text.empty() ? failure("machine", "its process ended without an answer") : text;
  } catch (const MachineError& error) {
    return failure("machine", error.what());
  }
}

PyObject* string_of(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

// Runs what Python calls. No exception of C++ passes through the interpreter.
template <typename Work>
PyObject* called(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyObject* ask_called(PyObject* /*module*/, PyObject* given) {
  const char* verb = nullptr;
  const char* arguments = nullptr;
  if (PyArg_ParseTuple(given, "ss", &verb, &arguments) == 0) return nullptr;
  return called([&]() -> PyObject* {
    const std::optional<std::string> text = ask(verb, arguments);
    return text ? string_of(*text) : nullptr;
  });
}

PyObject* arguments_called(PyObject* /*module*/, PyObject* /*none*/) {
  return called([] { return string_of(arguments().dump()); });
}

}  // namespace
}  // namespace syncline::python

PyMODINIT_FUNC PyInit__core();

PyMODINIT_FUNC PyInit__core() {
  namespace own = syncline::python;
  static PyMethodDef functions[] = {
      {"arguments", own::arguments_called, METH_NOARGS,
       "As JSON, the arguments of verbs that the command line reads by the same table."},
      {"ask", own::ask_called, METH_VARARGS,
       "The answer of a verb as JSON, or its failure, from its name and its arguments as JSON."},
      {nullptr, nullptr, 0, nullptr}};
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "_core",
                                   "What the functions of the package ask.",
                                   -1,
                                   functions,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  return own::called([]() -> PyObject* {
    own::hand_in_all();
    PyObject* const module = PyModule_Create(&definition);
    if (module != nullptr &&
        PyModule_AddStringConstant(module, "version", own::version().c_str()) != 0) {
      Py_DECREF(module);
      return nullptr;
    }
    return module;
  });
}
