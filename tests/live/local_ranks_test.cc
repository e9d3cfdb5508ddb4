// Where ranks that no launcher starts meet: what a launcher that was killed has left is cleared
// away, and nothing else.
#include "live/local_ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "tests/support/scratch.h"

namespace syncline::live {
namespace {

namespace fs = std::filesystem;
using test::Scratch;
using test::write_text;

class RendezvousFolders : public testing::Test {
 protected:
  RendezvousFolders() {
    const char* before = ::getenv("TMPDIR");
    if (before != nullptr) before_ = before;
    ::setenv("TMPDIR", scratch.folder().c_str(), 1);
  }
  ~RendezvousFolders() override {
    ::unsetenv("TMPDIR");
    if (before_) ::setenv("TMPDIR", before_->c_str(), 1);
  }
  // A launcher that is killed while its ranks meet.
  void leave_one() const {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t launcher = ::fork();
    if (launcher == 0) {
      const RendezvousFolder folder;
      write_text(folder.file(), "127.0.0.1 1 a\n");
      [[maybe_unused]] const auto n = ::write(ends[1], "x", 1);
      for (;;) ::pause();
    }
    char ready = 0;
    ASSERT_EQ(::read(ends[0], &ready, 1), 1);
    ::kill(launcher, SIGKILL);
    ::waitpid(launcher, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Scratch scratch;

 private:
  std::optional<std::string> before_;
};

TEST_F(RendezvousFolders, OfALauncherThatWasKilledIsClearedByTheNext) {
  leave_one();
  EXPECT_FALSE(scratch.empty());
  { const RendezvousFolder next; }
  EXPECT_TRUE(scratch.empty());
}

TEST_F(RendezvousFolders, OfOneThatLivesStays) {
  const RendezvousFolder first;
  const RendezvousFolder second;
  EXPECT_NE(first.file(), second.file());
  EXPECT_TRUE(fs::exists(fs::path(first.file()).parent_path()));
}

TEST_F(RendezvousFolders, ThatHoldAnythingElseStay) {
  fs::create_directory(scratch.path("syncline-meet-mine"));
  write_text(scratch.path("syncline-meet-mine/notes"), "mine");
  write_text(scratch.path("syncline-meet-note"), "mine");
  fs::create_directory_symlink("/", scratch.path("syncline-meet-link"));
  { const RendezvousFolder next; }
  EXPECT_EQ(test::text_of(scratch.path("syncline-meet-mine/notes")), "mine");
  EXPECT_EQ(test::text_of(scratch.path("syncline-meet-note")), "mine");
  EXPECT_TRUE(fs::is_symlink(scratch.path("syncline-meet-link")));
}

// Named like ours, even to the letter; only what the program wrote goes.
TEST_F(RendezvousFolders, OfAUserStayWhateverTheyAreCalled) {
  const std::vector<std::pair<std::string, std::string>> files{
      {"syncline-meet-notes/meeting-minutes.txt", "mine"},
      {"syncline-meet-letter/meeting-minutes.txt", "mine"},
      {"syncline-meet-letter/meet", "127.0.0.1 1 a\n"},
      {"syncline-meet-agenda/meet", "on Monday at 9\n"},
      {"syncline-meet-places/meet", "127.0.0.1 1 a\n"}};
  for (const auto& [name, content] : files) {
    const fs::path file = scratch.path(name);
    fs::create_directory(file.parent_path());
    const bool open = name.find("places") != std::string::npos;
    fs::permissions(file.parent_path(), open ? fs::perms(0755) : fs::perms::owner_all);
    write_text(file.string(), content);
  }
  { const RendezvousFolder next; }
  for (const auto& [name, content] : files) {
    EXPECT_EQ(test::text_of(scratch.path(name)), content) << name;
  }
}

TEST(LocalRanks, ShareATokenOfTheirOwn) {
  const auto one = local_ranks({"true"}, 2, "/m");
  const auto other = local_ranks({"true"}, 2, "/m");
  const std::string token = one[0].environment.at("SYNCLINE_TOKEN");
  EXPECT_EQ(token.size(), 64U);
  EXPECT_EQ(one[1].environment.at("SYNCLINE_TOKEN"), token);
  EXPECT_NE(other[0].environment.at("SYNCLINE_TOKEN"), token);
}

}  // namespace
}  // namespace syncline::live
