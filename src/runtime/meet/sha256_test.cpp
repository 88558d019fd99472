#include "runtime/meet/sha256.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace plait::runtime {
namespace {

std::string hex(const Digest& digest) {
  std::string out;
  for (const std::uint8_t byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

// FIPS 180-2, appendix B; the empty text from NIST's test vectors.
TEST(Sha256, HasTheValuesOfItsStandard) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, test cases 1, 2 and 6 (a key that is longer than a block).
TEST(Hmac, HasTheValuesOfItsStandard) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'),
                            "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, DigestsThatDifferInOneBitAreNotTheSame) {
  const Digest one = sha256("one");
  EXPECT_TRUE(same_digest(one, sha256("one")));
  for (std::size_t byte = 0; byte < one.size(); ++byte) {
    Digest other = one;
    other[byte] ^= 0x10;
    EXPECT_FALSE(same_digest(one, other)) << byte;
  }
}

}  // namespace
}  // namespace plait::runtime
