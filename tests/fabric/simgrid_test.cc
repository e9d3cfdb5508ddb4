// SimGrid's platform files: clusters by their parameters, and what is wrong with them.
#include <gtest/gtest.h>

#include <string>

#include "formats/fabric/files.h"
#include "tests/support/expect.h"
#include "tests/support/text.h"

namespace syncline::fabric {
namespace {

std::string cluster(const std::string& kind, const std::string& parameters,
                    const std::string& rate = "10Gbps") {
  return "<platform version='4.1'><cluster id='c' prefix='n' radical='0-3' suffix='' speed='1Gf' "
         "bw='" +
         rate + "' lat='1us' topology='" + kind + "' topo_parameters='" + parameters +
         "'/></platform>";
}

std::string told(const std::string& text) {
  return test::input_error([&] { simgrid_fabric("p.xml", text, 1); });
}

// Each number is allowed by itself; what they come to is asked before anything is built.
TEST(SimGridFabric, IsBoundedInItsTotalSize) {
  for (const auto& [kind, parameters] : std::initializer_list<std::pair<const char*, const char*>>{
           {"DRAGONFLY", "1,1;1,1;8192,1;131072"},
           {"DRAGONFLY", "1,1;1,1;8192,1;1"},
           {"DRAGONFLY", "131072,1;131072,1;131072,1;131072"},
           {"TORUS", "131072,1000"},
           {"TORUS", "65536,65536"},
           {"TORUS", "131072,131072,131072,131072,131072,131072"},
           {"FAT_TREE", "2;2,2;131072,131072;131072,131072"},
           {"FAT_TREE", "2;2,2;1,131072;1,131072"},
           {"FAT_TREE", "6;131072,131072,131072,131072,131072,131072;1,1,1,1,1,1;1,1,1,1,1,1"}}) {
    const std::string said = told(cluster(kind, parameters));
    EXPECT_TRUE(test::contains(said, "more than ") || test::contains(said, "one leaf")) << said;
  }
  EXPECT_EQ(simgrid_fabric("p.xml", cluster("TORUS", "4, 4"), 1).all_nodes(), 16);
  EXPECT_EQ(simgrid_fabric("p.xml", cluster("DRAGONFLY", "3,4;3,2;3,1;2"), 1).all_nodes(), 54);
  EXPECT_EQ(simgrid_fabric("p.xml", cluster("FAT_TREE", "2;4,4;1,2;1,2"), 1).all_nodes(), 16);
}

TEST(SimGridFabric, RefusesWhatMeansNothing) {
  for (const char* parameters : {"2x9,2abc", "2,,2", "", "2;", "0", "-1", "2.5", "131073", "1e3"}) {
    EXPECT_TRUE(test::contains(told(cluster("TORUS", parameters)), "expected whole numbers"))
        << parameters;
  }
  EXPECT_TRUE(test::contains(told(cluster("FAT_TREE", "2;2,2;2,2;1,1")),
                             "a node is plugged into one leaf"));
  EXPECT_TRUE(test::contains(
      told(cluster("FAT_TREE", "7;2,2,2,2,2,2,2;1,1,1,1,1,1,1;1,1,1,1,1,1,1")), "6 levels"));
  EXPECT_TRUE(test::contains(told(cluster("TORUS", "2,2,2,2,2,2,2")), "6 dimensions"));
  for (const char* rate : {"1e-320Bps", "1e300Bps", "nan", "inf", "-1Gbps", "0", "1Tbpsx"}) {
    EXPECT_TRUE(test::contains(told(cluster("TORUS", "2,2", rate)), "bandwidth")) << rate;
  }
}

}  // namespace
}  // namespace syncline::fabric
