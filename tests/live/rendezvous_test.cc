// The file in which ranks meet: nothing of a user's is lost in it, and nobody waits for ever.
#include "live/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/scratch.h"

namespace syncline::live {
namespace {

namespace fs = std::filesystem;
using test::text_of;
using test::write_text;

class RendezvousFile : public testing::Test {
 protected:
  RendezvousFile() {
    environment_.ranks = 2;
    environment_.file = path("meet");
  }
  std::string path(const std::string& name) const { return scratch_.path(name); }
  HostAddress found() const {
    constexpr auto kPatience = std::chrono::milliseconds(50);
    return find_first(environment_, LiveClock::now() + kPatience, kPatience);
  }

  test::Scratch scratch_;
  RankEnvironment environment_;
};

TEST_F(RendezvousFile, IsThereWhileRankZeroListens) {
  {
    OpenRendezvous open(environment_);
    EXPECT_EQ(found().port, port_of(open.listener()));
    EXPECT_THROW(OpenRendezvous second(environment_), RendezvousError);
    EXPECT_EQ(found().port, port_of(open.listener()));
  }
  EXPECT_TRUE(scratch_.empty());
}

TEST_F(RendezvousFile, OfARunThatWasKilledIsReplaced) {
  int port = 0;
  {
    const Socket listener = listen_on(0);
    port = port_of(listener);
  }
  write_text(environment_.file, "127.0.0.1 " + std::to_string(port) + "\n");
  { OpenRendezvous open(environment_); }
  EXPECT_TRUE(scratch_.empty());
}

TEST_F(RendezvousFile, ThatIsAUsersStays) {
  for (const std::string& text :
       {std::string("my notes\n"), std::string(), std::string("{\"name\": \"x\"}"),
        std::string("host 12 34\n"), std::string("127.0.0.1 1"), std::string("127.0.0.1 01\n"),
        std::string(301, 'x'), "127.0.0.1 1\n" + std::string(5, 'x')}) {
    write_text(environment_.file, text);
    EXPECT_THROW(OpenRendezvous open(environment_), InputError) << text;
    EXPECT_EQ(text_of(environment_.file), text);
    EXPECT_THROW(found(), RendezvousError) << text;
  }
}

TEST_F(RendezvousFile, ThatIsNoFileStays) {
  const auto expect_refused = [&] {
    EXPECT_THROW(OpenRendezvous open(environment_), InputError);
    EXPECT_THROW(found(), RendezvousError);
    EXPECT_TRUE(fs::exists(fs::symlink_status(environment_.file)));
    fs::remove(environment_.file);
  };
  fs::create_directory(environment_.file);
  expect_refused();
  ASSERT_EQ(::mkfifo(environment_.file.c_str(), 0600), 0);  // without a writer
  expect_refused();
  fs::create_symlink("/dev/zero", environment_.file);
  expect_refused();
  fs::create_symlink("nowhere", environment_.file);
  EXPECT_THROW(OpenRendezvous open(environment_), MachineError);
}

// What has come in its place meanwhile is another's.
TEST_F(RendezvousFile, IsLeftWhereItIsNoLongerOurs) {
  {
    OpenRendezvous open(environment_);
    write_text(environment_.file, "my notes\n");
  }
  EXPECT_EQ(text_of(environment_.file), "my notes\n");
}

}  // namespace
}  // namespace syncline::live
