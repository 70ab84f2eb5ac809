// Pixels and prompts against those of transformers' processors, from the same files.
#include "images/decode.h"
#include "images/processors/families.h"
#include "images/reader.h"
#include "images/reference.h"
#include "images/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

namespace braid::images {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

std::string text_of(element family, std::string_view name) {
  element found;
  return family[name].get(found) == simdjson::SUCCESS ? simdjson::minify(found) : std::string();
}

std::size_t offset_of(const Pixels& pixels, std::size_t tile) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < tile; ++i) at += std::size_t{3} * static_cast<std::size_t>(pixels.tiles[i].height * pixels.tiles[i].width);
  return at;
}

std::size_t place(const Pixels& pixels, std::size_t tile, std::size_t channel, std::size_t y, std::size_t x) {
  const auto height = static_cast<std::size_t>(pixels.tiles[tile].height);
  const auto width = static_cast<std::size_t>(pixels.tiles[tile].width);
  return offset_of(pixels, tile) + (channel * height + y) * width + x;
}

// Where the value lies that transformers has at `at` of an array of this shape. Each kind of processor has its order.
class Layout {
 public:
  Layout(std::string_view name, std::vector<std::size_t> shape, const Pixels& pixels)
      : name_(name), shape_(std::move(shape)), pixels_(pixels) {}

  std::size_t count() const { return std::accumulate(shape_.begin(), shape_.end(), std::size_t{1}, std::multiplies<>()); }

  // Of the padding: one beyond the last.
  std::size_t operator()(std::size_t at) const {
    if (name_ == "tiles") return at;
    if (name_ == "merged") return merged(at);
    if (name_ == "patches") return patches(at);
    return slices(at);
  }

 private:
  std::size_t width_of(std::size_t tile) const { return static_cast<std::size_t>(pixels_.tiles[tile].width); }

  // [patches, 3, 2 frames, side, side]; squares of 2 × 2 patches one after the other
  std::size_t merged(std::size_t at) const {
    const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(shape_[1]) / 6)));
    const std::size_t patch = at / shape_[1];
    const std::size_t within = at % shape_[1];
    const std::size_t squares = width_of(0) / side / 2;
    const std::size_t square = patch / 4;
    const std::size_t row = square / squares * 2 + patch % 4 / 2;
    const std::size_t column = square % squares * 2 + patch % 2;
    return place(pixels_, 0, within / (2 * side * side), row * side + within / side % side, column * side + within % side);
  }

  // [tiles, patches and padding, side, side, 3]
  std::size_t patches(std::size_t at) const {
    const std::size_t values = shape_[2];
    const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(values) / 3)));
    const std::size_t tile = at / (values * shape_[1]);
    const std::size_t patch = at / values % shape_[1];
    const std::size_t within = at % values;
    const std::size_t columns = width_of(tile) / side;
    if (patch >= columns * (static_cast<std::size_t>(pixels_.tiles[tile].height) / side)) return pixels_.values.size();
    return place(pixels_, tile, within % 3, patch / columns * side + within / 3 / side, patch % columns * side + within / 3 % side);
  }

  // [3, side, columns of all patches of all tiles]
  std::size_t slices(std::size_t at) const {
    const std::size_t side = shape_[2];
    const std::size_t channel = at / (shape_[3] * side);
    const std::size_t y = at / shape_[3] % side;
    std::size_t column = at % shape_[3];
    for (std::size_t tile = 0; tile < pixels_.tiles.size(); ++tile) {
      const std::size_t own = width_of(tile) * static_cast<std::size_t>(pixels_.tiles[tile].height) / side;
      if (column < own) {
        const std::size_t patch = column / side;
        const std::size_t columns = width_of(tile) / side;
        return place(pixels_, tile, channel, patch / columns * side + y, patch % columns * side + column % side);
      }
      column -= own;
    }
    return pixels_.values.size();
  }

  std::string_view name_;
  std::vector<std::size_t> shape_;
  const Pixels& pixels_;
};

// Within one of 255 steps, which is 1 / (255 deviation) of a normalised value.
void compare_pixels(const Pixels& pixels, element family, element expected) {
  std::vector<std::size_t> shape;
  for (const element extent : array(expected["shape"])) shape.push_back(uint64_t(extent));
  const Layout layout(family["layout"], shape, pixels);
  if (std::string_view(family["layout"]) != "patches") {
    ASSERT_EQ(pixels.values.size() * (shape.size() == 2 ? 2 : 1), layout.count());
  }
  const std::vector<std::uint8_t> samples = test::from_hex(expected["samples"]);
  ASSERT_EQ(samples.size(), 400U);
  int off = 0;  // by a whole step
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::size_t at = layout(test::sample_place(i, layout.count()));
    if (at == pixels.values.size()) continue;
    std::size_t tile = 0;
    while (tile + 1 < pixels.tiles.size() && offset_of(pixels, tile + 1) <= at) ++tile;
    const std::size_t channel =
        (at - offset_of(pixels, tile)) / static_cast<std::size_t>(pixels.tiles[tile].height * pixels.tiles[tile].width);
    const double stored = (pixels.values[at] * double(family["deviation"].at(channel)) + double(family["mean"].at(channel))) * 255;
    ASSERT_NEAR(stored, samples[i], 1.01) << "sample " << i << " at " << at;
    off += std::abs(stored - samples[i]) > 0.5;
  }
  EXPECT_LE(off, 4) << "of 400";
  double squares = 0;
  for (const float value : pixels.values) squares += static_cast<double>(value) * value;
  const double frames = shape.size() == 2 ? 2 : 1;
  EXPECT_NEAR(squares * frames, double(expected["squares"]), 2e-4 * double(expected["squares"]));
}

// [["<image>",576],…] as a text.
std::string expanded(element runs) {
  std::string out;
  for (const element run : array(runs)) out += repeated(std::string_view(run.at(0)), static_cast<int>(int64_t(run.at(1))));
  return out;
}

class ProcessorReferences : public testing::TestWithParam<std::string> {};

TEST_P(ProcessorReferences, PixelsAndPromptAreThoseOfTransformers) {
  const element reference = test::reference()["families"][GetParam()];
  const Result<Settings> settings =
      Settings::read(text_of(reference, "preprocessor_config"), text_of(reference, "processor_config"), text_of(reference, "config"));
  ASSERT_TRUE(settings) << settings.error().message;
  const Result<Family> family = make_family(*settings);
  ASSERT_TRUE(family) << family.error().message;
  for (const auto [name, expected] : object(reference["files"])) {
    SCOPED_TRACE(name);
    const Result<Picture> picture = decode(test::picture_file(name));
    ASSERT_TRUE(picture) << picture.error().message;
    const Result<Prepared> prepared = family->processor->prepare(*picture, {});
    ASSERT_TRUE(prepared) << prepared.error().message;
    // Of Mistral 3 only the prompts are known: its processor resizes otherwise than its image processor alone.
    if (!expected["samples"].error()) compare_pixels(prepared->pixels, reference, expected);
    element runs;
    if (expected["runs"].get(runs) != simdjson::SUCCESS) continue;
    // The prompt was "a PLACEHOLDER b"; where marks of the template stand around the placeholder, the reference has them too.
    const std::string whole = expanded(runs);
    EXPECT_NE(whole.find(prepared->text), std::string::npos) << "got " << prepared->text.substr(0, 200);
    std::int64_t vectors = 0;
    for (const element run : array(runs))
      if (std::string_view(run.at(0)) == family->marks.vector) vectors += int64_t(run.at(1));
    EXPECT_EQ(prepared->pixels.vectors, vectors);
  }
}

std::vector<std::string> all_families() {
  std::vector<std::string> names;
  for (const auto [name, value] : object(test::reference()["families"])) names.emplace_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Families, ProcessorReferences, testing::ValuesIn(all_families()),
                         [](const testing::TestParamInfo<std::string>& tested) { return tested.param; });

Result<Family> family_named(const char* name) {
  const element reference = test::reference()["families"][name];
  const Result<Settings> settings =
      Settings::read(text_of(reference, "preprocessor_config"), text_of(reference, "processor_config"), text_of(reference, "config"));
  return make_family(*settings);
}

// Little detail: one tile, or a small picture.
TEST(Processors, LittleDetailTakesFewVectors) {
  const Result<Picture> picture = decode(test::picture_file("large.png"));
  for (const auto& [name, most] :
       {std::pair{"smolvlm", 81}, {"internvl", 256}, {"qwen2_5_vl", 350}, {"pixtral", 800}, {"gemma4", 70}, {"lfm2_vl", 256}}) {
    SCOPED_TRACE(name);
    const Result<Family> family = family_named(name);
    ASSERT_TRUE(family);
    const Result<Prepared> low = family->processor->prepare(*picture, {.detail = ImageDetail::kLow});
    const Result<Prepared> high = family->processor->prepare(*picture, {.detail = ImageDetail::kHigh});
    ASSERT_TRUE(low && high);
    EXPECT_LE(low->pixels.vectors, most);
    EXPECT_GT(high->pixels.vectors, low->pixels.vectors);
  }
}

// A line of pixels must not become billions.
TEST(Processors, RefuseOrBoundExtremeShapes) {
  for (const std::string& name : all_families()) {
    SCOPED_TRACE(name);
    const Result<Family> family = family_named(name.c_str());
    ASSERT_TRUE(family);
    for (const Size size : {Size{1, 30'000}, Size{30'000, 1}, Size{1, 1}, Size{3, 2}}) {
      const bool is_alone = size.area() != 30'000 || size.height > 1;
      const Result<Prepared> prepared = family->processor->prepare(Picture::empty(size.height, size.width), {.is_alone = is_alone});
      if (!prepared) {
        EXPECT_EQ(prepared.error().code, ErrorCode::kInvalidArgument);
        continue;
      }
      EXPECT_GT(prepared->pixels.vectors, 0);
      EXPECT_LE(prepared->pixels.values.size(), 150'000'000U);
      std::size_t values = 0;
      for (const PixelTile& tile : prepared->pixels.tiles) values += std::size_t{3} * static_cast<std::size_t>(tile.height * tile.width);
      EXPECT_EQ(prepared->pixels.values.size(), values);
    }
  }
}

// LLaVA-OneVision cuts an image into tiles that is alone; of several each is one tile, on a square of the mean colour.
TEST(Processors, OfSeveralImagesOneVisionShowsEachAsAWhole) {
  const Result<Settings> settings = Settings::read(
      R"({"image_processor_type":"LlavaOnevisionImageProcessor","size":{"height":56,"width":56},"image_grid_pinpoints":[[56,56],[112,112]]})",
      R"({"num_image_tokens":16})", "{}");
  ASSERT_TRUE(settings);
  const Result<Family> family = make_family(*settings);
  ASSERT_TRUE(family);
  const Result<Picture> picture = decode(test::picture_file("large.png"));
  ASSERT_TRUE(picture);
  ASSERT_NE(picture->width, picture->height);
  const std::int32_t side = std::max(picture->height, picture->width);
  Picture square = Picture::empty(side, side);
  for (std::size_t i = 0; i < square.values.size(); i += 3) {
    square.values[i] = 122;
    square.values[i + 1] = 116;
    square.values[i + 2] = 104;
  }
  const std::int32_t top = (side - picture->height) / 2;
  const std::int32_t left = (side - picture->width) / 2;
  for (std::int32_t y = 0; y < picture->height; ++y)
    std::copy_n(picture->row(y), std::size_t{3} * static_cast<std::size_t>(picture->width), square.row(top + y) + std::ptrdiff_t{left} * 3);
  const Result<Prepared> alone = family->processor->prepare(square, {});
  const Result<Prepared> whole = family->processor->prepare(*picture, {.is_alone = false});
  ASSERT_TRUE(alone && whole);
  EXPECT_GT(alone->pixels.tiles.size(), 1U);
  ASSERT_EQ(whole->pixels.tiles.size(), 1U);
  EXPECT_EQ(whole->pixels.overview, -1);
  EXPECT_EQ(whole->pixels.vectors, 17) << "and what ends its rows";
  const std::vector<float> overview(alone->pixels.values.begin(), alone->pixels.values.begin() + std::ptrdiff_t{3} * 56 * 56);
  EXPECT_EQ(whole->pixels.values, overview);
}

// InternVL's own folders say in config.json whether pictures are cut, and whether a small one of the whole follows.
TEST(Processors, OfInternVlsOwnFoldersCutAsConfigured) {
  const auto made = [](const std::string& more) {
    return make_family(Settings::read("", "",
                                      R"({"model_type":"internvl_chat","force_image_size":56,"downsample_ratio":0.5,)"
                                      R"("vision_config":{"image_size":448,"patch_size":14})" +
                                          more + "}")
                           .value());
  };
  const Picture wide = Picture::empty(100, 300);
  const auto tiles = [&](const std::string& more, ImageDetail detail = ImageDetail::kAuto) {
    const Result<Family> family = made(more);
    const Prepared prepared = family->processor->prepare(wide, {.detail = detail}).value();
    EXPECT_EQ(prepared.pixels.vectors, static_cast<std::int32_t>(prepared.pixels.tiles.size()) * 4);
    return prepared.pixels.tiles.size();
  };
  const std::string cut = R"(,"dynamic_image_size":true,"max_dynamic_patch":3)";
  EXPECT_EQ(tiles(""), 1U);
  EXPECT_EQ(tiles(cut), 3U);
  EXPECT_EQ(tiles(cut + R"(,"use_thumbnail":true)"), 4U);
  EXPECT_EQ(tiles(cut + R"(,"use_thumbnail":true)", ImageDetail::kLow), 1U);
  EXPECT_EQ(tiles(cut + R"(,"min_dynamic_patch":4)"), 1U) << "no grid";
  const Result<Family> padded = made(R"(,"pad2square":true)");
  ASSERT_FALSE(padded);
  EXPECT_NE(padded.error().message.find("pad2square"), std::string::npos);
}

Picture photo() { return decode(test::picture_file("photo.jpg")).value(); }

TEST(Resizing, OfAPartIsAsOfTheWhole) {
  const Picture picture = photo();
  constexpr Size kWhole{150, 333};
  for (const Kernel kernel : {Kernel::kBilinear, Kernel::kBicubic, Kernel::kLanczos}) {
    const Picture whole = resized(picture, kWhole, kernel).value();
    for (const auto& [top, left, part] :
         {std::tuple{31, 200, Size{60, 70}}, {-5, 300, Size{30, 90}}, {140, -20, Size{40, 30}}, {0, 0, kWhole}, {200, 0, Size{9, 9}}})
      EXPECT_EQ(resized_part(picture, kWhole, kernel, top, left, part)->values, cropped(whole, top, left, part).values) << top;
  }
}

TEST(Resizing, OnASquareIsAsIfTheSquareWereMade) {
  const Picture picture = photo();
  const std::array<std::uint8_t, 3> ground = {122, 116, 104};
  Picture square = Picture::empty(picture.width, picture.width);
  for (std::size_t i = 0; i < square.values.size(); ++i) square.values[i] = ground[i % 3];
  for (std::int32_t y = 0; y < picture.height; ++y)
    std::copy_n(picture.row(y), std::size_t{3} * static_cast<std::size_t>(picture.width),
                square.row((picture.width - picture.height) / 2 + y));
  for (const Size size : {Size{56, 56}, Size{700, 90}, square.size()})
    EXPECT_EQ(resized_on_square(picture, ground, size, Kernel::kBicubic)->values, resized(square, size, Kernel::kBicubic)->values);
}

// A line of pixels on a square would be gigabytes.
TEST(Processors, OfLlavaMakeNoSquareOfALine) {
  const Result<Settings> settings =
      Settings::read(R"({"image_processor_type":"LlavaImageProcessor","do_pad":true,"size":{"shortest_edge":56},"crop_size":56})",
                     R"({"vision_feature_select_strategy":"default"})", "{}");
  const Result<Family> family = make_family(settings.value());
  ASSERT_TRUE(family);
  for (const Size size : {Size{1, 30'000}, Size{30'000, 1}, Size{40, 30}}) {
    const Result<Prepared> prepared = family->processor->prepare(Picture::empty(size.height, size.width), {});
    ASSERT_TRUE(prepared);
    EXPECT_EQ(prepared->pixels.values.size(), std::size_t{3} * 56 * 56);
  }
}

files::GgufFile mmproj_file(const char* projector, std::vector<std::pair<std::string, files::GgufValue>> more) {
  files::GgufContents contents;
  contents.metadata = {{"general.architecture", std::string("clip")},
                       {"clip.vision.projector_type", std::string(projector)},
                       {"clip.vision.image_mean", files::GgufArray{std::vector<double>{0.5, 0.5, 0.5}}},
                       {"clip.vision.image_std", files::GgufArray{std::vector<double>{0.5, 0.5, 0.5}}}};
  contents.metadata.insert(contents.metadata.end(), more.begin(), more.end());
  return files::GgufFile::from_contents(std::move(contents));
}

// What a folder's processor makes of a picture, those that are made of the metadata of llama.cpp's files make of it too.
TEST(Processors, OfFilesWithATowerAreThoseOfTheirFolders) {
  const auto number = [](std::uint64_t value) { return files::GgufValue(value); };
  const std::vector<std::pair<const char*, files::GgufFile>> files = [&] {
    std::vector<std::pair<const char*, files::GgufFile>> made;
    made.emplace_back("gemma4", mmproj_file("gemma4v", {{"clip.vision.patch_size", number(16)}, {"clip.vision.image_size", number(224)}}));
    made.emplace_back("minicpm_v", mmproj_file("minicpmv4_6", {{"clip.vision.patch_size", number(14)},
                                                               {"clip.vision.image_size", number(448)},
                                                               {"clip.vision.projector.scale_factor", number(4)}}));
    std::vector<std::uint64_t> sizes;
    for (std::uint64_t row = 1; row <= 6; ++row)
      for (std::uint64_t column = 1; column <= 6; ++column) sizes.insert(sizes.end(), {384 * column, 384 * row});
    made.emplace_back("llava_onevision", mmproj_file("mlp", {{"clip.vision.patch_size", number(14)},
                                                             {"clip.vision.image_size", number(384)},
                                                             {"clip.vision.image_aspect_ratio", std::string("anyres_max_9")},
                                                             {"clip.vision.image_grid_pinpoints", files::GgufArray{std::move(sizes)}}}));
    made.emplace_back("kimi_k25", mmproj_file("kimik25", {{"clip.vision.patch_size", number(14)},
                                                          {"clip.vision.projector.scale_factor", number(2)},
                                                          {"clip.vision.image_max_pixels", number(16'384 * 196)}}));
    return made;
  }();
  const Result<Settings> kimi = Settings::read(R"({"image_processor_type":"Kimi_K25ImageProcessor","patch_size":14})", "", "{}");
  const Result<Settings> onevision =
      Settings::read(R"({"image_processor_type":"LlavaOnevisionImageProcessor","image_mean":[0.5,0.5,0.5],"image_std":[0.5,0.5,0.5]})",
                     R"({"num_image_tokens":729})", "{}");
  ASSERT_TRUE(kimi && onevision);
  const Result<Picture> picture = decode(test::picture_file("large.png"));
  ASSERT_TRUE(picture);
  for (const auto& [name, file] : files) {
    SCOPED_TRACE(name);
    const std::string_view known = name;
    const Result<Family> own = known == "kimi_k25"          ? make_family(*kimi)
                               : known == "llava_onevision" ? make_family(*onevision)
                                                            : family_named(name);
    ASSERT_TRUE(own);
    const Result<Settings> settings = mmproj_settings(file);
    ASSERT_TRUE(settings) << settings.error().message;
    const Result<Family> family = make_family(*settings);
    ASSERT_TRUE(family);
    const Result<Prepared> expected = own->processor->prepare(*picture, {});
    const Result<Prepared> prepared = family->processor->prepare(*picture, {});
    ASSERT_TRUE(expected && prepared);
    EXPECT_EQ(prepared->text, expected->text);
    EXPECT_EQ(prepared->pixels.values, expected->pixels.values);
  }
}

TEST(Processors, ThoseThatAreUnknownAreNamed) {
  const Result<Settings> settings = Settings::read(R"({"image_processor_type":"FuyuImageProcessor"})", "", "{}");
  ASSERT_TRUE(settings);
  const Result<Family> family = make_family(*settings);
  ASSERT_FALSE(family);
  EXPECT_EQ(family.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(family.error().message.find("FuyuImageProcessor"), std::string::npos);
  EXPECT_FALSE(Settings::read("", "", R"({"model_type":"llama"})"));
  EXPECT_FALSE(Settings::read("[1]", "", "{}"));
}

}  // namespace
}  // namespace braid::images
