#include "io/format/npy.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "io/format/sample_npy.h"

namespace plait {
namespace {

using samples::npy;
using samples::npy_bytes;

std::string complaint(const std::string& bytes) {
  try {
    parse_npy("list.npy", bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Npy, DoublesAndFloatsAreRead) {
  EXPECT_EQ(parse_npy("a", npy({0.5, 1.25, 3})), (std::vector<double>{0.5, 1.25, 3}));
  EXPECT_EQ(parse_npy("a", npy_bytes<float>({0.5F, 1.25F}, "<f4")),
            (std::vector<double>{0.5, 1.25}));
  EXPECT_TRUE(parse_npy("a", npy({})).empty());
}

TEST(Npy, EveryTruncationIsAnError) {
  const std::string whole = npy({1, 2, 3});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(complaint(whole.substr(0, size)), "") << size << " bytes";
}

TEST(Npy, ComplaintsSayWhatIsWrong) {
  EXPECT_NE(complaint("PK\x03\x04 a zip").find("not a .npy file"), std::string::npos);
  EXPECT_NE(complaint(npy({1}) + "x").find("1 bytes after its 1 values"), std::string::npos);
  EXPECT_NE(complaint(npy_bytes<long>({1}, "<i8")).find("holds '<i8'"), std::string::npos);
  EXPECT_NE(complaint(npy_bytes<double>({1}, ">f8")).find("little-endian"), std::string::npos);
  EXPECT_NE(complaint(npy({1, std::numeric_limits<double>::quiet_NaN()})).find("value 1 is not"),
            std::string::npos);
  std::string table = npy({1, 2, 3, 4});
  table.replace(table.find("(4,), "), 6, "(2,2),");
  EXPECT_NE(complaint(table).find("one dimension"), std::string::npos);
  std::string later = npy({1});
  later[6] = '\x07';
  EXPECT_NE(complaint(later).find("version 7"), std::string::npos);
}

TEST(Npy, AnAbsurdLengthIsRefusedBeforeItIsReserved) {
  std::string bytes = npy({1, 2, 3});
  const std::size_t at = bytes.find("(3,), }");
  bytes.replace(at, 22, "(9999999999999999,), }");
  EXPECT_NE(complaint(bytes).find("at most"), std::string::npos);
}

}  // namespace
}  // namespace plait
