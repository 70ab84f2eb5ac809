#include "app/units.h"

#include <gtest/gtest.h>

namespace braid::app {
namespace {

using std::chrono::milliseconds;

TEST(Units, SizesWithEveryUnit) {
  EXPECT_EQ(parse_size("0").value(), 0U);
  EXPECT_EQ(parse_size("65536").value(), 65536U);
  EXPECT_EQ(parse_size("512M").value(), 512ULL << 20U);
  EXPECT_EQ(parse_size("4GiB").value(), 4ULL << 30U);
  EXPECT_EQ(parse_size("4 gib").value(), 4ULL << 30U);
  EXPECT_EQ(parse_size("1.5G").value(), 3ULL << 29U);
  EXPECT_EQ(parse_size("2GB").value(), 2'000'000'000ULL);
  EXPECT_EQ(parse_size("1T").value(), 1ULL << 40U);
}

TEST(Units, SizesThatAreNone) {
  for (const char* text : {"", "G", "-1G", "4XB", "1e9", "nan", "inf", "4GiB!", "0x10", "99999999T", "1  G"}) {
    const auto size = parse_size(text);
    ASSERT_TRUE(size.has_error()) << text;
    EXPECT_NE(size.error().message.find(std::string("'") + text + "'"), std::string::npos) << size.error().message;
  }
}

TEST(Units, Durations) {
  EXPECT_EQ(parse_duration("30s").value(), milliseconds(30'000));
  EXPECT_EQ(parse_duration("500ms").value(), milliseconds(500));
  EXPECT_EQ(parse_duration("2m").value(), milliseconds(120'000));
  EXPECT_EQ(parse_duration("1h").value(), milliseconds(3'600'000));
  EXPECT_EQ(parse_duration("7d").value(), std::chrono::days(7));
  EXPECT_EQ(parse_duration("0.5").value(), milliseconds(500));
  for (const char* text : {"", "s", "-1s", "5 minutes", "1w"}) EXPECT_TRUE(parse_duration(text).has_error()) << text;
  EXPECT_EQ(parse_duration("36500d").value(), std::chrono::days(36'500));
  EXPECT_EQ(parse_duration("1000000d").error().message, "'1000000d' is too long: 36500d are the most");
}

TEST(Units, FormatsWithThreeDigits) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(999), "999 B");
  EXPECT_EQ(format_size(1023), "1.00 KiB");
  EXPECT_EQ(format_size(31'501'696), "30.0 MiB");
  EXPECT_EQ(format_size(3ULL << 40U), "3.00 TiB");
}

}  // namespace
}  // namespace braid::app
