// Towers and connectors of tiny random models against what transformers computes for them (reference/make_images.py).
#include "kernels/select.h"
#include "model/folder_models.h"
#include "model/forward_harness.h"
#include "model/image_models.h"
#include "model/images/patch_grid.h"

#include <cmath>
#include <limits>

namespace braid::model::test {
namespace {

class ImageTowers : public testing::TestWithParam<std::string> {};

TEST_P(ImageTowers, GiveTheReferencesVectorsOnEveryTier) {
  const ImageReference reference = read_image_reference(GetParam());
  for (const auto* table : available_tables()) {
    kernels::ThreadTeam team(2);
    const auto tower = load_tower(GetParam(), *table, team);
    const std::vector<float> vectors = encode_image(*tower, reference.pixels);
    ASSERT_EQ(vectors.size(), reference.features.size()) << table->name;
    for (std::size_t i = 0; i < vectors.size(); ++i)
      ASSERT_NEAR(vectors[i], reference.features[i], 5e-4 + 2e-4 * std::abs(reference.features[i])) << table->name << ", value " << i;
  }
}

// Left between any two parts for another image, and by another number of threads.
TEST_P(ImageTowers, GiveTheSameBitsWhereverTheyAreLeft) {
  kernels::ThreadTeam one(1);
  kernels::ThreadTeam three(3);
  const auto alone = load_tower(GetParam(), kernels::best_kernel_table(), one);
  const auto shared = load_tower(GetParam(), kernels::best_kernel_table(), three);
  simdjson::dom::parser parser;
  const simdjson::dom::element facts = simdjson::dom::element(parser.load(image_model_path(GetParam()) + "/reference.json"))["synthetic"];
  const Pixels first = formula_pixels(facts);
  const Pixels second = formula_pixels(facts, 5);
  const auto a = shared->begin(std::make_shared<const Pixels>(first));
  const auto b = shared->begin(std::make_shared<const Pixels>(second));
  for (bool a_goes_on = true, b_goes_on = true; a_goes_on || b_goes_on;) {
    a_goes_on = a_goes_on && a->advance();
    b_goes_on = b_goes_on && b->advance();
  }
  EXPECT_EQ(a->take(), encode_image(*alone, first));
  EXPECT_EQ(b->take(), encode_image(*alone, second));
}

TEST_P(ImageTowers, RefuseWhatIsNoImageOfTheirs) {
  kernels::ThreadTeam team(1);
  const auto tower = load_tower(GetParam(), kernels::best_kernel_table(), team);
  const Pixels sound = read_image_reference(GetParam()).pixels;
  const auto expect_refused = [&](auto&& change) {
    Pixels pixels = sound;
    change(pixels);
    EXPECT_FALSE(tower->check(pixels)) << GetParam();
  };
  expect_refused([](Pixels& p) { p.values.pop_back(); });
  expect_refused([](Pixels& p) { p.vectors += 1; });
  expect_refused([](Pixels& p) { p.tiles.clear(); });
  expect_refused([](Pixels& p) { p.tiles.front().height += 1; });
  expect_refused([](Pixels& p) { p.tiles.front().height = -p.tiles.front().height; });
  expect_refused([](Pixels& p) { p.tiles.pop_back(); });
  expect_refused([](Pixels& p) { p.tiles.push_back(p.tiles.back()); });
}

TEST_P(ImageTowers, ReportNumbersThatAreNone) {
  kernels::ThreadTeam team(1);
  const auto tower = load_tower(GetParam(), kernels::best_kernel_table(), team);
  Pixels pixels = read_image_reference(GetParam()).pixels;
  pixels.values[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(encode_image(*tower, pixels).empty());
}

// The files have bf16. On AMX tiles round what it is multiplied with, too.
TEST_P(ImageTowers, MayKeepTheTypeOfTheirWeights) {
  const ImageReference reference = read_image_reference(GetParam());
  for (const auto* table : available_tables()) {
    kernels::ThreadTeam team(2);
    const auto tower = load_tower(GetParam(), *table, team, kernels::WeightType::kBF16);
    EXPECT_LT(tower->weights().encoder.bytes, load_tower(GetParam(), *table, team)->weights().encoder.bytes);
    const std::vector<float> vectors = encode_image(*tower, reference.pixels);
    ASSERT_EQ(vectors.size(), reference.features.size()) << table->name;
    const double bound = table->isa == kernels::Isa::kAmx ? 0.2 : 5e-4;
    for (std::size_t i = 0; i < vectors.size(); ++i)
      ASSERT_NEAR(vectors[i], reference.features[i], bound * (1.0 + std::abs(reference.features[i]))) << table->name << ", value " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ImageTowers, testing::ValuesIn(image_models()), folder_test_name);

// 384 pixels are 27 patches of 14 and a rest, which a convolution does not see.
TEST(TowersOfFixedSize, DoNotSeeWhatIsLessThanAPatch) {
  kernels::ThreadTeam team(1);
  const auto tower = load_tower("llava", kernels::best_kernel_table(), team);
  const Pixels exact = read_image_reference("llava").pixels;
  constexpr std::int32_t kSide = 56;
  constexpr std::int32_t kMore = 60;
  Pixels larger = exact;
  larger.tiles = {{kMore, kMore}};
  larger.values.clear();
  for (std::int32_t plane = 0; plane < 3; ++plane)
    for (std::int32_t y = 0; y < kMore; ++y)
      for (std::int32_t x = 0; x < kMore; ++x)
        larger.values.push_back(x < kSide && y < kSide ? exact.values[static_cast<std::size_t>((plane * kSide + y) * kSide + x)] : 99.0F);
  EXPECT_EQ(encode_image(*tower, larger), encode_image(*tower, exact));
}

TEST(TowerRevisions, FollowFromTheWeights) {
  kernels::ThreadTeam team(1);
  const auto revision = [&](const std::string& name) { return load_tower(name, kernels::best_kernel_table(), team)->weights().revision; };
  EXPECT_EQ(revision("llava"), revision("llava"));
  EXPECT_NE(revision("idefics3"), revision("smolvlm"));
}

// A table of the size that is asked for is left as it is.
TEST(PatchPlaces, OfTheTablesOwnSizeAreTheTable) {
  std::vector<float> table;
  for (int i = 0; i < 4 * 4 * 3; ++i) table.push_back(static_cast<float>(i * i % 31));
  EXPECT_EQ(smoothed_places(table, 3, 4, 4), table);
  EXPECT_EQ(blended_places(table, 3, 4, 4), table);
}

// What the mean of each two by two places is.
TEST(PatchPlaces, AreSmoothedWhereTheyShrink) {
  const std::vector<float> table = {0, 0, 4, 4, 0, 0, 4, 4, 8, 8, 12, 12, 8, 8, 12, 12};
  const std::vector<float> half = smoothed_places(table, 1, 2, 2);
  ASSERT_EQ(half.size(), 4U);
  EXPECT_NEAR(half[0] + half[3], half[1] + half[2], 1e-5);
  EXPECT_NEAR((half[0] + half[1] + half[2] + half[3]) / 4, 6.0, 1e-5);
  EXPECT_LT(half[0], half[1]);
}

}  // namespace
}  // namespace braid::model::test
