#include "app/request/batch_tokens.h"

#include <gtest/gtest.h>

#include "app/plan/sample_requests.h"

namespace plait {
namespace {

BatchTokens millions(double count) { return {count * 1e6, count * 0x1p20, "tokens"}; }

TEST(BatchTokens, AreSamplesByTheReadingThatComesOutEven) {
  // 4,000,000 / 4,096 is not whole, 4 x 1,048,576 / 4,096 = 1,024; 4,000,000 / 4,000 = 1,000.
  EXPECT_EQ(samples_of(millions(4), 4096).samples, 1024);
  EXPECT_EQ(samples_of(millions(4), 4000).samples, 1000);
  EXPECT_EQ(samples_of(millions(4), 4096).note, "");
}

TEST(BatchTokens, AreRoundedWithANoteWhereNeitherDoes) {
  // 1,000,000 / 3,000 = 333.3; 1,048,576 / 3,000 = 349.5.
  const BatchSamples batch = samples_of(millions(1), 3000);
  EXPECT_EQ(batch.samples, 333);
  EXPECT_NE(batch.note.find("333 samples are taken"), std::string::npos) << batch.note;
}

TEST(BatchTokens, OfMoreSamplesThanThereMayBeAreRefused) {
  EXPECT_TRUE(samples::complaint([] {
                samples_of(millions(1e9), 1);
              }).starts_with("`global_batch`: tokens are "));
}

}  // namespace
}  // namespace plait
