#include "runtime/state/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace plait::runtime {
namespace {

// Values that xxh64sum prints for the same bytes.
TEST(Checksum, IsXxh64) {
  EXPECT_EQ(checksum_text(checksum_of("")), "ef46db3751d8e999");
  EXPECT_EQ(checksum_text(checksum_of("a")), "d24ec4f1a98c6e5b");
  EXPECT_EQ(checksum_text(checksum_of("abc")), "44bc2cf5ad770999");
  EXPECT_EQ(checksum_text(checksum_of("Nobody inspects the spammish repetition")),
            "fbcea83c8a378bf1");
}

TEST(Checksum, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 37);
  for (const std::size_t piece : {1, 7, 31, 32, 33, 100}) {
    Checksum checksum;
    for (std::size_t i = 0; i < text.size(); i += piece)
      checksum.add(std::string_view(text).substr(i, piece));
    EXPECT_EQ(checksum.value(), checksum_of(text)) << piece;
  }
}

TEST(Checksum, ChangesWithEveryBit) {
  std::string text(67, 'x');
  const std::uint64_t before = checksum_of(text);
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(checksum_of(text), before) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

TEST(Checksum, ReadsItsOwnDigitsOnly) {
  EXPECT_EQ(checksum_from("ef46db3751d8e999"), 0xef46db3751d8e999);
  for (const char* text : {"", "EF46DB3751D8E999", "ef46db3751d8e99", "0ef46db3751d8e999", "-1"})
    EXPECT_EQ(checksum_from(text), std::nullopt) << text;
}

}  // namespace
}  // namespace plait::runtime
