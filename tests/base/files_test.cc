// What stands at a path is never lost: regular files are replaced whole, links are followed, and
// what is no file is written into.
#include "formats/text/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <future>
#include <random>

#include "core/base/error.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::text_of;
using test::write_text;

class Files : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return scratch_.path(name); }
  std::string pipe() const {
    EXPECT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    return path("pipe");
  }
  // A character device like /dev/null; empty where this machine lets nobody make one.
  std::string device(unsigned minor) const {
    const std::string name = path("device" + std::to_string(minor));
    if (::mknod(name.c_str(), S_IFCHR | 0666, makedev(1, minor)) != 0) return "";
    if (::access(name.c_str(), W_OK) != 0 || ::close(::open(name.c_str(), O_WRONLY)) != 0)
      return "";
    return name;
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(scratch_.folder()), {}));
  }
  static struct stat status_of(const std::string& file) {
    struct stat status {};
    EXPECT_EQ(::lstat(file.c_str(), &status), 0) << file;
    return status;
  }

  test::Scratch scratch_;
};

TEST_F(Files, AreReplacedWholeWithTheirModeAndOwner) {
  write_text(path("x"), "old");
  ::chmod(path("x").c_str(), 0640);
  constexpr uid_t kOther = 65534;
  const bool root = ::chown(path("x").c_str(), kOther, kOther) == 0;
  write_file(path("x"), "new\n");
  EXPECT_EQ(text_of(path("x")), "new\n");
  EXPECT_EQ(status_of(path("x")).st_mode & 07777, 0640u);
  EXPECT_EQ(status_of(path("x")).st_uid, root ? kOther : ::getuid());
  EXPECT_EQ(entries(), 1u) << "nothing is left beside it";
}

TEST_F(Files, NewOnesHaveTheUsersMode) {
  const mode_t before = ::umask(027);
  write_file(path("x"), "new");
  ::umask(before);
  EXPECT_EQ(status_of(path("x")).st_mode & 07777, 0640u);
}

TEST_F(Files, LinksStayAndTheirTargetsAreWritten) {
  fs::create_directory(path("there"));
  write_text(path("there/x"), "old");
  fs::create_symlink("there/x", path("near"));
  fs::create_symlink(path("near"), path("far"));
  fs::create_symlink("there/y", path("dangling"));
  write_file(path("far"), "new");
  write_file(path("dangling"), "made");
  for (const char* link : {"near", "far", "dangling"}) EXPECT_TRUE(fs::is_symlink(path(link)));
  EXPECT_EQ(text_of(path("there/x")), "new");
  EXPECT_EQ(text_of(path("there/y")), "made");
  fs::create_symlink("loop", path("loop"));
  EXPECT_THROW(write_file(path("loop"), "x"), MachineError);
  EXPECT_TRUE(fs::is_symlink(path("loop")));
}

TEST_F(Files, ImpossiblePathsAreReportedInFull) {
  const std::string nul("a\0b", 3);
  fs::create_symlink("loop", path("loop"));
  for (const auto& [name, told] : std::initializer_list<std::pair<std::string, std::string>>{
           {nul, "a b: no such file: a name has no NUL"},
           {path("loop"), path("loop") + ": a link that leads back to itself"}}) {
    EXPECT_EQ(test::input_error([&, name = name] { read_text_file(name, "text"); }), told);
  }
  EXPECT_THROW(write_file(nul, "x"), MachineError);
}

// A regular file by its kind, whose reader waits for the kernel's next message.
TEST_F(Files, KernelFilesAreNotWaitedFor) {
  const int file = ::open("/proc/kmsg", O_RDONLY | O_NONBLOCK);
  if (file < 0) GTEST_SKIP() << "only root may read the kernel's messages";
  ::close(file);
  EXPECT_THROW(read_text_file("/proc/kmsg", "text"), InputError);
}

// A file that was read is kept, by whatever name an output leads to it.
TEST_F(Files, InputFilesAreNotReplaced) {
  write_text(path("x"), "input");
  fs::create_symlink("x", path("link"));
  fs::create_hard_link(path("x"), path("other name"));
  fs::create_directory(path("there"));
  EXPECT_EQ(read_text_file(path("link"), "text"), "input");
  for (const char* name : {"x", "link", "other name", "there/../x"}) {
    EXPECT_THROW(write_file(path(name), "output"), InputError) << name;
    EXPECT_THROW(expect_writable(path(name)), InputError) << name;
  }
  EXPECT_EQ(text_of(path("x")), "input");
  may_be_replaced(path("x"));
  EXPECT_NO_THROW(write_file(path("link"), "output"));
  note_read(path("x"));
  EXPECT_THROW(write_file(path("x"), "more"), InputError);
  forget_what_was_read();
  EXPECT_NO_THROW(write_file(path("x"), "more"));
}

TEST_F(Files, OutputsOfOneCommandAreDifferent) {
  write_text(path("x"), "old");
  fs::create_symlink("x", path("link"));
  fs::create_directory(path("there"));
  for (const auto& [first, second] : std::initializer_list<std::pair<const char*, const char*>>{
           {"x", "x"}, {"x", "link"}, {"new", "new"}, {"new", "there/../new"}}) {
    EXPECT_THROW(expect_different({path(first), "", path(second)}), InputError) << second;
  }
  EXPECT_NO_THROW(expect_different({path("x"), path("new"), "", ""}));
  EXPECT_NO_THROW(expect_different({"/dev/null", "/dev/null"}));
}

TEST_F(Files, DevicesAreWrittenIntoAndStay) {
  constexpr unsigned kNull = 3;
  constexpr unsigned kFull = 7;
  const std::string null = device(kNull);
  const std::string full = device(kFull);
  if (null.empty() || full.empty()) GTEST_SKIP() << "device nodes cannot be made and opened here";
  write_file(null, "x");
  EXPECT_NO_THROW(expect_writable(null));
  EXPECT_THROW(write_file(full, "x"), MachineError);
  for (const auto& name : {null, full}) EXPECT_TRUE(fs::is_character_file(name)) << name;
}

TEST_F(Files, PipesAreWrittenInto) {
  const std::string name = pipe();
  auto read = std::async(std::launch::async, [&] { return read_text_file(name, "text"); });
  write_file(name, "through");
  EXPECT_EQ(read.get(), "through");
  EXPECT_TRUE(fs::is_fifo(name));
}

TEST_F(Files, APipeWithoutItsOtherEndIsAFailure) {
  const std::string name = pipe();
  EXPECT_THROW(write_file(name, "x", milliseconds(30)), MachineError);
  EXPECT_THROW(read_text_file(name, "text", kLargestFile, milliseconds(30)), InputError);
}

// A writer that has come may think for longer than one may be late.
TEST_F(Files, AWriterMayBeSlow) {
  const std::string name = pipe();
  const int here = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  auto read = std::async(std::launch::async, [&] {
    return read_text_file(name, "text", kLargestFile, milliseconds(1));
  });
  EXPECT_EQ(read.wait_for(milliseconds(50)), std::future_status::timeout);
  EXPECT_EQ(::write(here, "late", 4), 4);
  ::close(here);
  EXPECT_EQ(read.get(), "late");
}

TEST_F(Files, EndlessFilesAreReadToTheLimit) {
  constexpr long long kMax = 1 << 20;
  EXPECT_THROW(read_text_file("/dev/zero", "text", kMax), InputError);
  fs::create_symlink("/dev/zero", path("link"));
  EXPECT_THROW(read_text_file(path("link"), "text", kMax), InputError);
}

// /dev/stdout, by whatever links it is reached, is what this process prints to: a file that a
// shell opened there must not be pulled away from under it.
TEST_F(Files, ADescriptorsNameMeansTheDescriptor) {
  const int file = ::open(path("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::write(file, "before ", 7), 7);
  const ino_t number = status_of(path("out")).st_ino;
  const std::string name = "/dev/fd/" + std::to_string(file);
  fs::create_symlink(name, path("link"));
  write_file(name, "during ");
  write_file(path("link"), "linked ");
  ASSERT_EQ(::write(file, "after", 5), 5);
  ::close(file);
  EXPECT_EQ(text_of(path("out")), "before during linked after");
  EXPECT_EQ(status_of(path("out")).st_ino, number);
  EXPECT_THROW(write_file(name, "closed"), MachineError);
}

// Writers into one folder at random: each file holds one of the texts that were meant for it.
TEST_F(Files, AreNeverTorn) {
  std::mt19937 random(1);
  std::vector<std::future<void>> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.push_back(std::async(std::launch::async, [this, writer, seed = random()] {
      std::mt19937 own(static_cast<unsigned>(seed));
      for (int i = 0; i < 50; ++i) {
        const std::string text(1 + own() % 100000, static_cast<char>('a' + writer));
        write_file(path("f" + std::to_string(own() % 3)), text);
      }
    }));
  }
  for (auto& writer : writers) writer.get();
  for (const auto& entry : fs::directory_iterator(scratch_.folder())) {
    const std::string text = text_of(entry.path());
    EXPECT_EQ(text.find_first_not_of(text.front()), std::string::npos) << entry.path();
  }
  EXPECT_EQ(entries(), 3u);
}

TEST_F(Files, AreTriedBeforeTheWork) {
  write_text(path("x"), "old");
  EXPECT_NO_THROW(expect_writable(path("x")));
  EXPECT_NO_THROW(expect_writable(path("new")));
  EXPECT_EQ(text_of(path("x")), "old");
  EXPECT_EQ(entries(), 1u);
  EXPECT_THROW(expect_writable(path("none/x")), InputError);
  EXPECT_THROW(write_file(path("none/x"), "x"), InputError);
  for (const std::string& wrong :
       {scratch_.folder(), path("x/y"), std::string(), path("x") + "/"}) {
    EXPECT_THROW(expect_writable(wrong), MachineError) << wrong;
    EXPECT_THROW(write_file(wrong, "x"), MachineError) << wrong;
  }
}

}  // namespace
}  // namespace syncline
