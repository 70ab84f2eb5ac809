// Keys as ssh-keygen writes them. These are nobody's.
#include "registry/ssh_key.h"

#include "support/folder.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace braid::registry {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kPlain = R"(-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACBOMffgxts3KIJF5vm07zG73U1ZbCQOx2H++tfJpbV/tAAAAJhkCDpCZAg6
QgAAAAtzc2gtZWQyNTUxOQAAACBOMffgxts3KIJF5vm07zG73U1ZbCQOx2H++tfJpbV/tA
AAAECnXZFVWNdyDOg+rGPP8OM5tJwyd3j20m8sXC4kMlrhRk4x9+DG2zcogkXm+bTvMbvd
TVlsJA7HYf7618mltX+0AAAAEHNvbWVib2R5QGV4YW1wbGUBAgMEBQ==
-----END OPENSSH PRIVATE KEY-----
)";
constexpr std::string_view kWithPassphrase = R"(-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABCHCM5pMM
LminZPcow5jBK6AAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIMBZx+iPdRlfSZCq
g5AMjx3pC+IL9SEzQrheW6VUtRITAAAAkILdmzgbPiQo2JNyZhzTeCzsTAxYW0/g+as5ki
RPP8p1sUc7lWnQ4gdEvDO9+IweNnLLZiO5sc1j32C6IApElA3SLrwUCQ+Li9rSoI8DUsKc
GD4wUiRkcxiYZOGcfXsZ08YOl3WBhPo6MNDrk4SNO5FjyryLtrPA2Wbs2sX+A+vUX3vr0l
HA7K8IKRuDOa2pEA==
-----END OPENSSH PRIVATE KEY-----
)";
constexpr std::string_view kEcdsa = R"(-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS
1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQQ7IWr2cF77yoOtOUEz8otcNuiH8DJ1
QUeApIvx6hYS9eRNTG42380pbISRHYIIiilntewZ5/ZadnviFyHM/gVkAAAAoICzAuuAsw
LrAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBDshavZwXvvKg605
QTPyi1w26IfwMnVBR4Cki/HqFhL15E1MbjbfzSlshJEdggiKKWe17Bnn9lp2e+IXIcz+BW
QAAAAgKJUNoI6W3BA5kxkjAix3NaNwIe9eU894KAcqZexsYmQAAAABYwECAwQFBgc=
-----END OPENSSH PRIVATE KEY-----
)";

constexpr std::string_view kPublic = "AAAAC3NzaC1lZDI1NTE5AAAAIE4x9+DG2zcogkXm+bTvMbvdTVlsJA7HYf7618mltX+0";

TEST(SshKeys, OfSshKeygenSignAsOthersDo) {
  const Result<SshKey> key = SshKey::parse(kPlain);
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(key->public_line(), "ssh-ed25519 " + std::string(kPublic));
  EXPECT_EQ(key->signature_of("GET,https://example.com/token,YWJj"),
            std::string(kPublic) + ":8pG2r1xcQMcgfr5qd9ToTv2ju6uOasAIOrYjesiTQAEl3dyr2WtThVteChguEd0JoaXGm2dVriwfIx7227rfAw==")
      << "by Python's cryptography";
}

TEST(SshKeys, AreWrittenAsTheyAreRead) {
  const SshKey key = SshKey::make();
  const Result<SshKey> again = SshKey::parse(key.text());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->signature_of("x"), key.signature_of("x"));
  EXPECT_NE(SshKey::make().public_line(), key.public_line());
}

TEST(SshKeys, OfOtherKindsAreRefused) {
  for (const std::string_view other :
       {kWithPassphrase, kEcdsa, std::string_view(), std::string_view("-----BEGIN OPENSSH PRIVATE KEY-----")}) {
    const Result<SshKey> key = SshKey::parse(other);
    ASSERT_FALSE(key);
    EXPECT_THAT(key.error().message, HasSubstr("ssh-keygen -t ed25519"));
  }
}

TEST(SshKeys, ThatAreCutOrDamagedAreNone) {
  const std::string text(kPlain);
  const std::size_t begin = text.find('\n') + 1;
  const std::size_t end = text.find("-----END");
  for (std::size_t count = 0; count < end - begin - 4; ++count)
    EXPECT_FALSE(SshKey::parse(text.substr(0, begin + count) + text.substr(end))) << count;
  for (std::size_t at = begin; at < end; ++at) {
    std::string damaged = text;
    damaged[at] = damaged[at] == '/' ? 'A' : '/';
    static_cast<void>(SshKey::parse(damaged));  // read within its bounds
  }
}

TEST(SshKeys, AreMadeOnceForTheirOwnerAlone) {
  const test::Folder folder;
  const std::string path = folder / "id_ed25519";
  EXPECT_EQ(SshKey::read(path).error().code, ErrorCode::kNotFound);
  const Result<SshKey> made = SshKey::read_or_make(path);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(SshKey::read_or_make(path)->public_line(), made->public_line());
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 1) << "nothing else is left";
  std::ofstream(path) << "something else";
  EXPECT_THAT(SshKey::read_or_make(path).error().message, StartsWith(path + ": no key of the kind"));
  EXPECT_THAT(SshKey::read_or_make(folder / "none/key").error().message, StartsWith("cannot write"));
}

}  // namespace
}  // namespace braid::registry
