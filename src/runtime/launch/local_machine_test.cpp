#include "runtime/launch/local_machine.h"

#include <gtest/gtest.h>

namespace plait::runtime {
namespace {

TEST(LocalMachine, FreeMemoryIsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(available_memory("MemTotal:  100 kB\nMemFree: 5 kB\nMemAvailable:   64 kB\nX: 1 kB\n"),
            Bytes(65536));
  EXPECT_EQ(available_memory("MemTotal: 100 kB\n"), std::nullopt);
  ASSERT_TRUE(local_machine([](const std::string&) { return std::nullopt; }).free_memory);
}

TEST(LocalMachine, AControlGroupLimitsIt) {
  EXPECT_EQ(group_memory("1000\n", "400\n"), Bytes(600));
  EXPECT_EQ(group_memory("1000\n", "4000\n"), Bytes(0));
  EXPECT_EQ(group_memory("max\n", "4000\n"), std::nullopt);
  EXPECT_EQ(group_memory("", ""), std::nullopt);
}

TEST(LocalMachine, GpusAreListedInMebibytes) {
  EXPECT_EQ(gpu_memories("81559\n40960\n"), (std::vector{Bytes(81559 * 0x1p20), Bytes(0xap32)}));
  EXPECT_TRUE(gpu_memories("No devices were found\n").empty());
}

TEST(LocalMachine, VisibleGpusEndAtTheFirstThatIsNotThere) {
  EXPECT_EQ(visible_gpus(4, std::nullopt), 4);
  EXPECT_EQ(visible_gpus(4, ""), 0);
  EXPECT_EQ(visible_gpus(4, "2,0"), 2);
  EXPECT_EQ(visible_gpus(4, "2,-1,3"), 1);
  EXPECT_EQ(visible_gpus(4, "0,7,1"), 1);
  EXPECT_EQ(visible_gpus(4, "GPU-8932f937"), 1);
}

}  // namespace
}  // namespace plait::runtime
