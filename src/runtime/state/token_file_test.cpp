#include "runtime/state/token_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/error.h"
#include "io/format/json_reader.h"

namespace plait::runtime {
namespace {

std::string file_in_temporary(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / (std::to_string(getpid()) + "_" + name))
      .string();
}

TEST(TokenizerTest, BytesAreTheirOwnTokens) {
  EXPECT_EQ(Tokenizer().encode("a\xff"), (std::vector<std::int32_t>{97, 255}));
  EXPECT_EQ(Tokenizer().vocabulary(), 256);
}

TEST(TokenizerTest, TheMostFrequentPairIsMergedFirstAndOfEqualsTheSmaller) {
  // Words "ab", " ab", " ab", " cd", " cd": ab comes 3 times; then " " + ab, " " + c and cd twice
  // each: (32, 99), (32, 256), (99, 100), of which the first has the smaller tokens.
  const Tokenizer tokenizer = Tokenizer::trained("ab ab ab cd cd", 258);
  EXPECT_EQ(tokenizer.merges(), (Tokenizer::Merges{{'a', 'b'}, {' ', 'c'}}));
  EXPECT_EQ(tokenizer.encode("ab cd"), (std::vector<std::int32_t>{256, 257, 'd'}));
}

TEST(TokenizerTest, LearningEndsWhenNoPairComesTwice) {
  // "aa" once and " aa" once: only (a, a) comes twice.
  EXPECT_EQ(Tokenizer::trained("aa aa", 4096).merges(), (Tokenizer::Merges{{'a', 'a'}}));
}

TEST(TokenizerTest, AnyTextDecodesToItself) {
  const std::string text = "Zwölf  Boxkämpfer\n\n\tjagen 12345 Viktor!? " + std::string(200, 'x');
  const Tokenizer tokenizer = Tokenizer::trained(text + text + text, 300);
  EXPECT_GT(tokenizer.vocabulary(), 270);
  for (const std::string& some :
       {text, std::string("\x00\x01\xfe", 3), std::string(" "), std::string("   "), std::string()})
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(some)), some);
}

TEST(TokenizerTest, MergesStayInsideWords) {
  EXPECT_EQ(first_word_length("hello world"), 5U);
  EXPECT_EQ(first_word_length(" world!"), 6U);
  EXPECT_EQ(first_word_length("   x"), 2U);  // the third blank goes with x
  EXPECT_EQ(first_word_length("\n\nx"), 2U);
  EXPECT_EQ(first_word_length("12ab"), 2U);
  EXPECT_EQ(first_word_length(std::string(100, 'x')), 64U);
}

TEST(TokenFileTest, WhatIsWrittenIsReadBack) {
  const std::string path = file_in_temporary("written.bin");
  write_token_file(path, {5, 300, 7}, Tokenizer::trained("aaaa aaaa bbb bbb ccc ccc", 256));
  // 300 is outside the vocabulary of 256: found when it is read.
  const TokenFile file(path);
  EXPECT_EQ(file.count(), 3);
  EXPECT_EQ(file.index().token_bytes, 2);
  EXPECT_EQ(file.index().tokenizer, "bytes");
  std::vector<std::int64_t> tokens(1);
  file.read(2, tokens);
  EXPECT_EQ(tokens[0], 7);
  EXPECT_THROW(file.read(1, tokens), InputError);
  EXPECT_THROW(file.sample(3, 0, 0, 0), InputError);
}

TEST(TokenFileTest, TheTokenizerComesBackWithTheIndex) {
  const std::string path = file_in_temporary("merged.bin");
  const Tokenizer tokenizer = Tokenizer::trained("ab ab ab cd cd", 258);
  write_token_file(path, tokenizer.encode("ab cd"), tokenizer);
  EXPECT_EQ(read_token_index(index_path(path)).merges, tokenizer.merges());
}

TEST(TokenFileTest, SizesThatDisagreeAndMissingIndexesAreErrors) {
  const std::string path = file_in_temporary("short.bin");
  write_token_file(path, {1, 2, 3}, Tokenizer());
  write_text_file(path, "abcd");
  EXPECT_THROW(TokenFile{path}, InputError);
  const std::string alone = file_in_temporary("alone.bin");
  write_text_file(alone, "abcd");
  EXPECT_THROW(TokenFile{alone}, InputError);
  EXPECT_THROW(write_token_file("tokens.json", {1}, Tokenizer()), InputError);
}

TEST(TokenFileTest, SamplesDependOnSeedStepAndNumberOnly) {
  EXPECT_EQ(sample_begin(1000, 10, 1, 2, 3), sample_begin(1000, 10, 1, 2, 3));
  std::set<std::int64_t> begins;
  for (int seed = 0; seed < 4; ++seed)
    for (int step = 0; step < 4; ++step)
      for (int number = 0; number < 4; ++number)
        begins.insert(sample_begin(std::int64_t{1} << 40, 10, static_cast<std::uint64_t>(seed),
                                   step, number));
  EXPECT_EQ(begins.size(), 64U);
}

TEST(TokenFileTest, SamplesAreUniformOverTheFile) {
  // 4 places, 4000 draws: 1000 each, give or take 4 standard deviations of sqrt(4000 * 3) / 4 = 27.
  std::vector<int> counts(4);
  for (int step = 0; step < 4000; ++step)
    ++counts[static_cast<std::size_t>(sample_begin(13, 10, 7, step, 0))];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 110);
}

TEST(TokenFileTest, AFileThatShrinksUnderTheRunIsAnError) {
  const std::string path = file_in_temporary("shrinking.bin");
  write_token_file(path, std::vector<std::int32_t>(5000, 7), Tokenizer());
  const TokenFile file(path);
  std::vector<std::int64_t> tokens(5000);
  file.read(0, tokens);
  std::filesystem::resize_file(path, 4000);  // 2,000 tokens of two bytes
  EXPECT_NO_THROW(file.read(0, std::span(tokens).first(2000)));
  EXPECT_THROW(file.read(0, tokens), InputError);
  EXPECT_THROW(file.read(4000, std::span(tokens).first(1)), InputError);
}

TEST(TokenFileTest, APipeIsNotWaitedFor) {
  const std::string path = file_in_temporary("pipe.bin");
  std::filesystem::remove(path);
  write_text_file(index_path(path), R"({"format": "plait-tokens", "vocabulary": 9, "count": 4,
                                        "dtype": "uint16"})");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(TokenFile{path}, InputError);
  std::filesystem::remove(path);
  std::filesystem::remove(index_path(path));
  ASSERT_EQ(mkfifo(index_path(path).c_str(), 0600), 0);
  EXPECT_THROW(TokenFile{path}, InputError);
  std::filesystem::remove(index_path(path));
}

}  // namespace
}  // namespace plait::runtime
