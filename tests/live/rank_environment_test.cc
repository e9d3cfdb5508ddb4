// Which rank this process is, from the variables that its launcher has set.
#include "live/rank_environment.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/support/expect.h"

namespace syncline::live {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<RankEnvironment> read(const Variables& variables, const std::string& file = "") {
  return read_rank_environment(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto it = variables.find(name);
        if (it == variables.end()) return std::nullopt;
        return it->second;
      },
      file);
}

std::string refusal(const Variables& variables) {
  return test::input_error([&] { read(variables); });
}

const Variables kOurs{{"SYNCLINE_RANK", "1"}, {"SYNCLINE_RANKS", "2"}, {"SYNCLINE_PORT", "4711"}};
const Variables kTorchrun{
    {"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
const Variables kSlurm{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

TEST(RankEnvironment, IsReadForEachLauncher) {
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({{"RANK", "3"}})) << "a word that other programs use too";
  using Rendezvous = RankEnvironment::Rendezvous;
  const struct {
    Variables variables;
    std::string launcher;
    int rank, ranks;
    Rendezvous rendezvous;
    std::string host;
    int port;
  } launched[] = {
      {kOurs, "syncline", 1, 2, Rendezvous::kAddress, "127.0.0.1", 4711},
      {kTorchrun, "torchrun", 0, 4, Rendezvous::kAddress, "node1", 29500},
      // The agent listens at the port itself.
      {with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}), "torchrun", 0, 4,
       Rendezvous::kAddress, "node1", 29501},
      {with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"MASTER_PORT", "65535"}}),
       "torchrun", 0, 4, Rendezvous::kAddress, "node1", 65534},
      {{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}},
       "mpirun",
       2,
       3,
       Rendezvous::kMpi,
       "",
       0},
      {{{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}}, "mpirun", 2, 3, Rendezvous::kMpi, "", 0},
      {kSlurm, "srun", 1, 2, Rendezvous::kFile, "", 0},
  };
  for (const auto& each : launched) {
    SCOPED_TRACE(each.launcher);
    const auto found = read(each.variables);
    ASSERT_TRUE(found);
    EXPECT_EQ(std::tie(found->launcher, found->rank, found->ranks, found->rendezvous, found->host,
                       found->port, found->listener),
              std::tuple(each.launcher, each.rank, each.ranks, each.rendezvous, each.host,
                         each.port, -1));
    EXPECT_EQ(read(each.variables, "/m")->rendezvous, Rendezvous::kFile);
  }
  EXPECT_EQ(read(with(kOurs, {{"SYNCLINE_RANK", "0"}, {"SYNCLINE_LISTENER", "5"}}))->listener, 5);
  const auto second = read(with(kSlurm, {{"SLURM_JOB_ID", "17"}, {"SLURM_STEP_ID", "2"}}));
  EXPECT_NE(second->file.find("17.2"), std::string::npos);
  EXPECT_NE(second->file, read(kSlurm)->file) << "two jobs in one folder do not meet";
}

// The closest launcher counts: ranks that we start ourselves inherit what is around them.
TEST(RankEnvironment, IsThatOfTheInnermostLauncher) {
  Variables variables = with(kOurs, {{"OMPI_COMM_WORLD_RANK", "5"},
                                     {"OMPI_COMM_WORLD_SIZE", "6"},
                                     {"SLURM_PROCID", "0"},
                                     {"SLURM_NTASKS", "9"}});
  EXPECT_EQ(read(variables)->launcher, "syncline");
  variables.erase("SYNCLINE_RANK");
  EXPECT_EQ(read(variables)->launcher, "mpirun");
}

TEST(RankEnvironment, SaysIfTheRanksShareAMachine) {
  Variables variables = kTorchrun;
  EXPECT_EQ(read(variables)->token, "");
  EXPECT_FALSE(read(variables)->one_machine);
  variables["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_FALSE(read(variables)->one_machine);
  variables["LOCAL_WORLD_SIZE"] = "4";
  EXPECT_TRUE(read(variables)->one_machine);
  variables["SYNCLINE_TOKEN"] = "0123456789abcdef";
  variables["GLOO_SOCKET_IFNAME"] = "eth1,eth2";
  variables["TORCHELASTIC_RUN_ID"] = "17";
  EXPECT_EQ(read(variables)->token, "0123456789abcdef");
  EXPECT_EQ(read(variables)->interface, "eth1");
  EXPECT_EQ(read(variables)->run_id, "17");
  EXPECT_TRUE(read(kOurs)->one_machine);
  variables["SYNCLINE_TOKEN"] = "too short";
  EXPECT_EQ(refusal(variables).rfind("SYNCLINE_TOKEN: found 9 characters", 0), 0u)
      << refusal(variables);
}

TEST(RankEnvironment, BrokenVariablesAreNamed) {
  const auto broken = [](const std::string& name, const std::string& value) {
    return with(kTorchrun, {{name, value}});
  };
  const std::string unset = ": not set, though the launcher's other variables are";
  for (const auto& [variables, message] : std::vector<std::pair<Variables, std::string>>{
           {{{"SYNCLINE_RANK", "0"}, {"SYNCLINE_PORT", "4711"}}, "SYNCLINE_RANKS" + unset},
           {{{"SYNCLINE_RANK", "0"}, {"SYNCLINE_RANKS", "1"}}, "SYNCLINE_PORT" + unset},
           {{{"SYNCLINE_RANK", "0"}, {"SYNCLINE_RANKS", "1"}, {"SYNCLINE_PORT", "4711"}},
            "SYNCLINE_LISTENER" + unset},
           {broken("RANK", "4"), "RANK: found '4', expected 0 to 3"},
           {broken("RANK", "-1"), "RANK: found '-1', expected 0 to 3"},
           {broken("RANK", "one"), "RANK: found 'one', expected 0 to 3"},
           {broken("RANK", ""), "RANK: found '', expected 0 to 3"},
           {broken("WORLD_SIZE", "0"), "WORLD_SIZE: found '0', expected 1 to 100000"},
           {broken("WORLD_SIZE", "99999999999"),
            "WORLD_SIZE: found '99999999999', expected 1 to 100000"},
           {broken("WORLD_SIZE", "4 "), "WORLD_SIZE: found '4 ', expected 1 to 100000"},
           {broken("MASTER_PORT", "0"), "MASTER_PORT: found '0', expected 1 to 65535"},
           {broken("MASTER_PORT", "70000"), "MASTER_PORT: found '70000', expected 1 to 65535"},
           {{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "3"}},
            "OMPI_COMM_WORLD_RANK: found '3', expected 0 to 2"},
           {{{"OMPI_COMM_WORLD_RANK", "3"}}, "OMPI_COMM_WORLD_SIZE" + unset},
           {{{"SLURM_PROCID", "x"}, {"SLURM_NTASKS", "3"}},
            "SLURM_PROCID: found 'x', expected 0 to 2"}}) {
    EXPECT_EQ(refusal(variables), message);
  }
  for (const std::string missing : {"MASTER_ADDR", "MASTER_PORT"}) {
    Variables variables = kTorchrun;
    variables.erase(missing);
    EXPECT_EQ(refusal(variables).rfind(missing + ": not set", 0), 0u) << refusal(variables);
  }
}

}  // namespace
}  // namespace syncline::live
