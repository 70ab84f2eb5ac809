#include "images/decode.h"

#include "images/exif.h"
#include "images/reference.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <string>

namespace braid::images {
namespace {

using test::picture_file;

// Pillow's own conversion of 16 bits of grey cuts off at 255 and leaves white; the upper eight bits are meant.
const std::set<std::string_view> kOtherwise = {"grey16.png"};

TEST(Decode, GivesThePixelsOfPillow) {
  int files = 0;
  for (const auto [name, expected] : simdjson::dom::object(test::reference()["decoded"])) {
    SCOPED_TRACE(name);
    const Result<Picture> picture = decode(picture_file(name));
    ASSERT_TRUE(picture) << picture.error().message;
    EXPECT_EQ(picture->height, int64_t(expected["size"].at(0)));
    EXPECT_EQ(picture->width, int64_t(expected["size"].at(1)));
    if (kOtherwise.contains(name)) continue;
    const std::vector<std::uint8_t> samples = test::from_hex(expected["samples"]);
    // Pillow has a later libjpeg-turbo, whose inverse transform may round otherwise.
    const int slack = name.ends_with(".jpg") ? 2 : 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::size_t at = test::sample_place(i, picture->values.size());
      ASSERT_LE(std::abs(picture->values[at] - samples[i]), slack) << "value " << at;
    }
    const auto sum = std::accumulate(picture->values.begin(), picture->values.end(), int64_t{0});
    EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(int64_t(expected["sum"])),
                slack * 0.02 * static_cast<double>(picture->values.size()));
    ++files;
  }
  EXPECT_EQ(files, 29);
}

TEST(Decode, TakesTheUpperEightBitsOfSixteen) {
  const Result<Picture> picture = decode(picture_file("grey16.png"));
  ASSERT_TRUE(picture);
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 80; ++x) ASSERT_EQ(picture->row(y)[x * 3], ((y * 700 + x * 210) & 0xFFFF) >> 8);
}

std::vector<std::string> all_pictures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::kImages / "pictures")) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

// What has lost its end is an error, and never a picture that is half grey.
TEST(Decode, RefusesWhatIsCutOff) {
  for (const std::string& name : all_pictures()) {
    SCOPED_TRACE(name);
    if (name == "film.gif") continue;  // whose first frame is whole long before its end
    const std::string file = picture_file(name);
    for (std::size_t part = 0; part < 24; ++part) {
      const Result<Picture> picture = decode(std::string_view(file).substr(0, file.size() * part / 25));
      ASSERT_FALSE(picture) << part;
      EXPECT_EQ(picture.error().code, ErrorCode::kInvalidArgument);
      EXPECT_NE(picture.error().message.find("image"), std::string::npos) << picture.error().message;
    }
  }
}

TEST(Decode, RefusesWhatIsNoPicture) {
  for (const std::string_view file :
       {"", "x", "hello, this is text", "%PDF-1.7", "<svg/>", "\xFF\xD8", "GIF89a", "BM", "\x89PNG\r\n\x1A\n"})
    EXPECT_FALSE(decode(file)) << file;
}

void put(std::string& file, std::size_t at, std::uint32_t value, std::size_t bytes, bool big) {
  for (std::size_t i = 0; i < bytes; ++i) file[at + (big ? bytes - 1 - i : i)] = static_cast<char>(value >> (8 * i));
}

void expect_too_large(const std::string& file) {
  const Result<Picture> picture = decode(file);
  ASSERT_FALSE(picture);
  EXPECT_EQ(picture.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(picture.error().message.find("at most"), std::string::npos) << picture.error().message;
}

// Headers that promise some gigabytes: nothing of that size may be touched, or this test takes forever.
TEST(Decode, RefusesAPictureThatIsTooLargeByItsHeader) {
  std::string bmp = picture_file("plain.bmp");
  put(bmp, 18, 29'000, 4, false);
  put(bmp, 22, 29'000, 4, false);
  expect_too_large(bmp);
  std::string gif = picture_file("film.gif");
  put(gif, 6, 29'000, 2, false);
  put(gif, 8, 29'000, 2, false);
  expect_too_large(gif);
  std::string jpeg = picture_file("grey.jpg");
  const std::size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  put(jpeg, frame + 5, 29'000, 2, true);
  put(jpeg, frame + 7, 29'000, 2, true);
  expect_too_large(jpeg);
  EXPECT_FALSE(decode(picture_file("photo.jpg"), {.pixels = 640 * 480 - 1}));
  EXPECT_FALSE(decode(picture_file("tall.png"), {.pixels = 1'000'000, .side = 516}));
  EXPECT_FALSE(decode(picture_file("lossy.webp"), {.pixels = 1'000'000, .side = 199}));
  EXPECT_TRUE(decode(picture_file("lossy.webp"), {.pixels = 200 * 140, .side = 200}));
}

TEST(Decode, ReadsTheOrientationOfBothByteOrders) {
  using namespace std::string_view_literals;
  EXPECT_EQ(orientation_in("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"sv), 6);
  EXPECT_EQ(orientation_in("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"sv), 8);
  EXPECT_EQ(orientation_in("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x09\0\0"sv), 1);
  EXPECT_EQ(orientation_in("II*\0\xFF\xFF\xFF\xFF"sv), 1);
  EXPECT_EQ(orientation_in(""sv), 1);
}

}  // namespace
}  // namespace braid::images
