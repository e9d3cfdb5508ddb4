// Which rank this process is, from the variables that its launcher has set.
#include "live/rank_environment.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"

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
  try {
    read(variables);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(RankEnvironment, OfEachLauncher) {
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({{"RANK", "3"}})) << "a word that other programs use too";

  Variables ours{{"SYNCLINE_RANK", "1"}, {"SYNCLINE_RANKS", "2"}, {"SYNCLINE_PORT", "4711"}};
  const auto own = read(ours);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->launcher, "syncline");
  EXPECT_EQ(own->rank, 1);
  EXPECT_EQ(own->ranks, 2);
  EXPECT_EQ(own->rendezvous, RankEnvironment::Rendezvous::kAddress);
  EXPECT_EQ(own->host, "127.0.0.1");
  EXPECT_EQ(own->port, 4711);
  EXPECT_EQ(own->listener, -1);
  EXPECT_EQ(read(ours, "/m")->rendezvous, RankEnvironment::Rendezvous::kFile);
  ours["SYNCLINE_RANK"] = "0";
  ours["SYNCLINE_LISTENER"] = "5";
  EXPECT_EQ(read(ours)->listener, 5);

  const Variables torchrun{
      {"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  const auto torch = read(torchrun);
  ASSERT_TRUE(torch);
  EXPECT_EQ(torch->launcher, "torchrun");
  EXPECT_EQ(torch->rendezvous, RankEnvironment::Rendezvous::kAddress);
  EXPECT_EQ(torch->host, "node1");
  EXPECT_EQ(torch->port, 29500);
  Variables agent = torchrun;
  agent["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(read(agent)->port, 29501) << "the agent listens at the port itself";
  agent["MASTER_PORT"] = "65535";
  EXPECT_EQ(read(agent)->port, 65534);
  EXPECT_EQ(read(torchrun, "/m")->rendezvous, RankEnvironment::Rendezvous::kFile);

  for (const auto& [rank, ranks] : {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                                    std::pair("PMI_RANK", "PMI_SIZE")}) {
    const Variables mpirun{{rank, "2"}, {ranks, "3"}};
    const auto mpi = read(mpirun);
    ASSERT_TRUE(mpi);
    EXPECT_EQ(mpi->launcher, "mpirun");
    EXPECT_EQ(mpi->rank, 2);
    EXPECT_EQ(mpi->ranks, 3);
    EXPECT_EQ(mpi->rendezvous, RankEnvironment::Rendezvous::kMpi);
    EXPECT_EQ(read(mpirun, "/m")->rendezvous, RankEnvironment::Rendezvous::kFile);
  }

  const Variables slurm{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}};
  const auto srun = read(slurm);
  ASSERT_TRUE(srun);
  EXPECT_EQ(srun->launcher, "srun");
  EXPECT_EQ(srun->rendezvous, RankEnvironment::Rendezvous::kFile);
  Variables second = slurm;
  second["SLURM_JOB_ID"] = "17";
  second["SLURM_STEP_ID"] = "2";
  EXPECT_NE(read(second)->file.find("17.2"), std::string::npos);
  EXPECT_NE(read(second)->file, srun->file) << "two jobs in one folder do not meet";
}

// The closest launcher counts: ranks that we start ourselves inherit what is around them.
TEST(RankEnvironment, OfTheInnermostLauncher) {
  Variables variables{{"SYNCLINE_RANK", "1"},        {"SYNCLINE_RANKS", "2"},
                      {"SYNCLINE_PORT", "4711"},     {"OMPI_COMM_WORLD_RANK", "5"},
                      {"OMPI_COMM_WORLD_SIZE", "6"}, {"SLURM_PROCID", "0"},
                      {"SLURM_NTASKS", "9"}};
  EXPECT_EQ(read(variables)->launcher, "syncline");
  variables.erase("SYNCLINE_RANK");
  EXPECT_EQ(read(variables)->launcher, "mpirun");
}

TEST(RankEnvironment, WhatTheRanksShare) {
  Variables variables{
      {"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
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
  EXPECT_TRUE(read({{"SYNCLINE_RANK", "1"}, {"SYNCLINE_RANKS", "2"}, {"SYNCLINE_PORT", "4711"}})
                  ->one_machine);
  variables["SYNCLINE_TOKEN"] = "too short";
  EXPECT_EQ(refusal(variables).rfind("SYNCLINE_TOKEN: found 9 characters", 0), 0u)
      << refusal(variables);
}

TEST(RankEnvironment, BrokenVariablesAreNamed) {
  EXPECT_EQ(refusal({{"SYNCLINE_RANK", "0"}, {"SYNCLINE_PORT", "4711"}}),
            "SYNCLINE_RANKS: not set, though the launcher's other variables are");
  EXPECT_EQ(refusal({{"SYNCLINE_RANK", "0"}, {"SYNCLINE_RANKS", "1"}}),
            "SYNCLINE_PORT: not set, though the launcher's other variables are");
  EXPECT_EQ(refusal({{"SYNCLINE_RANK", "0"}, {"SYNCLINE_RANKS", "1"}, {"SYNCLINE_PORT", "4711"}}),
            "SYNCLINE_LISTENER: not set, though the launcher's other variables are");
  const Variables torchrun{
      {"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  const std::vector<std::tuple<std::string, std::string, std::string>> broken{
      {"RANK", "4", "RANK: found '4', expected 0 to 3"},
      {"RANK", "-1", "RANK: found '-1', expected 0 to 3"},
      {"RANK", "one", "RANK: found 'one', expected 0 to 3"},
      {"RANK", "", "RANK: found '', expected 0 to 3"},
      {"WORLD_SIZE", "0", "WORLD_SIZE: found '0', expected 1 to 100000"},
      {"WORLD_SIZE", "99999999999", "WORLD_SIZE: found '99999999999', expected 1 to 100000"},
      {"WORLD_SIZE", "4 ", "WORLD_SIZE: found '4 ', expected 1 to 100000"},
      {"MASTER_PORT", "0", "MASTER_PORT: found '0', expected 1 to 65535"},
      {"MASTER_PORT", "70000", "MASTER_PORT: found '70000', expected 1 to 65535"}};
  for (const auto& [name, value, message] : broken) {
    Variables variables = torchrun;
    variables[name] = value;
    EXPECT_EQ(refusal(variables), message);
  }
  for (const std::string missing : {"MASTER_ADDR", "MASTER_PORT"}) {
    Variables variables = torchrun;
    variables.erase(missing);
    EXPECT_EQ(refusal(variables).rfind(missing + ": not set", 0), 0u) << refusal(variables);
  }
  EXPECT_EQ(refusal({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "3"}}),
            "OMPI_COMM_WORLD_RANK: found '3', expected 0 to 2");
  EXPECT_EQ(refusal({{"OMPI_COMM_WORLD_RANK", "3"}}),
            "OMPI_COMM_WORLD_SIZE: not set, though the launcher's other variables are");
  EXPECT_EQ(refusal({{"SLURM_PROCID", "x"}, {"SLURM_NTASKS", "3"}}),
            "SLURM_PROCID: found 'x', expected 0 to 2");
}

}  // namespace
}  // namespace syncline::live
