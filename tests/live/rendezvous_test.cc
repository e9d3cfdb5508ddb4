// The file in which ranks meet: nothing of a user's is lost in it, and nobody waits for ever.
#include "live/rendezvous.h"

#include <gtest/gtest.h>
#include <poll.h>
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
  std::optional<FirstAddress> found() const { return FirstRank(environment_).now(); }
  // As a run that is no more has left it.
  void leave(const std::string& line) const {
    write_text(environment_.file, line);
    fs::permissions(environment_.file, fs::perms::owner_read | fs::perms::owner_write);
  }

  test::Scratch scratch_;
  RankEnvironment environment_;
};

TEST_F(RendezvousFile, IsThereWhileRankZeroListens) {
  EXPECT_FALSE(found());
  {
    OpenRendezvous open(environment_);
    ASSERT_TRUE(found());
    EXPECT_EQ(found()->port, parse_port(own_end(open.listener().fd())));
    EXPECT_EQ(found()->token, open.token());
    EXPECT_THROW(OpenRendezvous second(environment_), RendezvousError);
    EXPECT_EQ(found()->port, parse_port(own_end(open.listener().fd())));
    open.close();
    EXPECT_TRUE(found()) << "a rank that comes too late finds that the others have met";
    EXPECT_TRUE(FirstRank(environment_).lives());
  }
  EXPECT_TRUE(scratch_.empty());
}

TEST_F(RendezvousFile, IsReadableOnlyByItsOwnerAndHasASecret) {
  OpenRendezvous open(environment_);
  struct stat status {};
  ASSERT_EQ(::stat(environment_.file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_GE(open.token().size(), 64U);
  environment_.file = path("other");
  OpenRendezvous other(environment_);
  EXPECT_NE(open.token(), other.token());
}

TEST_F(RendezvousFile, IsRefusedIfOthersMayReadOrWriteIt) {
  OpenRendezvous open(environment_);
  for (const auto mode : {0640U, 0602U}) {
    ASSERT_EQ(::chmod(environment_.file.c_str(), mode), 0);
    EXPECT_THROW(found(), MachineError);
  }
  // The token that came with the environment proves who rank 0 is.
  environment_.token = "sixteen letters!";
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->token, environment_.token);
}

TEST_F(RendezvousFile, ContainsNoTokenFromTheEnvironment) {
  environment_.token = "sixteen letters!";
  OpenRendezvous open(environment_);
  EXPECT_EQ(text_of(environment_.file).find(environment_.token), std::string::npos);
  EXPECT_EQ(open.token(), environment_.token);
}

// Whatever listens now where that run did.
TEST_F(RendezvousFile, IsReplacedIfItsRunWasKilled) {
  const Socket another = listen_on(kLoopback, 0);
  leave("127.0.0.1 " + std::to_string(parse_port(own_end(another.fd()))) + " 0123456789abcdef\n");
  EXPECT_FALSE(FirstRank(environment_).lives());
  {
    OpenRendezvous open(environment_);
    EXPECT_EQ(found()->port, parse_port(own_end(open.listener().fd())));
  }
  EXPECT_TRUE(scratch_.empty());
}

TEST(RendezvousSocket, IsBoundToWhatIsNeeded) {
  RankEnvironment environment;
  const auto listens = [&] {
    return parse_address(own_end(OpenRendezvous(environment).listener().fd()));
  };
  environment.one_machine = true;
  EXPECT_EQ(listens(), kLoopback);
  environment.one_machine = false;
  environment.interface = "lo";
  EXPECT_EQ(listens(), kLoopback);
  environment.interface = "";
  EXPECT_EQ(listens(), reachable_address());
  environment.rendezvous = RankEnvironment::Rendezvous::kAddress;
  for (const std::string host : {"127.0.0.1", "localhost", "127.0.0.2"}) {
    environment.host = host;
    EXPECT_EQ(listens().substr(0, 4), "127.") << host;
  }
  environment.host = reachable_address();
  EXPECT_EQ(listens(), reachable_address());
  environment.host = "192.0.2.1";  // a documentation's, which no machine has
  EXPECT_EQ(listens(), kEveryAddress);
}

// A second rank 0 is known for one, though the first no longer listens.
TEST(RendezvousSocket, KeepsItsPort) {
  RankEnvironment environment;
  environment.ranks = 2;
  environment.rendezvous = RankEnvironment::Rendezvous::kAddress;
  environment.host = kLoopback;
  environment.port = parse_port(own_end(listen_on(kLoopback, 0).fd()));
  OpenRendezvous open(environment);
  open.close();
  const Socket caller = bind_socket(kLoopback, 0);
  EXPECT_TRUE(begin_call(caller, kLoopback + (":" + std::to_string(environment.port))));
  pollfd connected{caller.fd(), POLLOUT, 0};
  EXPECT_EQ(::poll(&connected, 1, 200), 0) << "nobody is heard";
  EXPECT_THROW(OpenRendezvous second(environment), RendezvousError);
}

TEST_F(RendezvousFile, IsKeptIfItIsAUsersFile) {
  for (const std::string& text :
       {std::string("my notes\n"), std::string(), std::string("{\"name\": \"x\"}"),
        std::string("host 12 34 56\n"), std::string("127.0.0.1 1\n"), std::string("127.0.0.1 1 a"),
        std::string("127.0.0.1 01 a\n"), std::string("127.0.0.1 70000 a\n"),
        std::string("127.0.0.1 0 a\n"), std::string("127.0.0.1 -1 a\n"), std::string(" 1 a\n"),
        std::string("127.0.0.1 1 \n"), std::string("127.0.0.1  1 a\n"), std::string(401, 'x'),
        "127.0.0.1 1 a\n" + std::string(5, 'x')}) {
    leave(text);
    EXPECT_THROW(OpenRendezvous open(environment_), InputError) << text;
    EXPECT_EQ(text_of(environment_.file), text);
    EXPECT_FALSE(found()) << text;
  }
}

TEST_F(RendezvousFile, IsKeptIfItIsNoFile) {
  const auto expect_refused = [&] {
    EXPECT_THROW(OpenRendezvous open(environment_), InputError);
    EXPECT_FALSE(found());
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
TEST_F(RendezvousFile, IsKeptIfItIsNoLongerOurs) {
  {
    OpenRendezvous open(environment_);
    write_text(environment_.file, "my notes\n");
  }
  EXPECT_EQ(text_of(environment_.file), "my notes\n");
}

}  // namespace
}  // namespace syncline::live
