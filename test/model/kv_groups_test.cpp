#include "model/kv_groups.h"

#include "model/kv_arena.h"

#include <gtest/gtest.h>
#include <set>

namespace braid::model {
namespace {

constexpr step::Visibility kAll{};
constexpr step::Visibility kWindow{.window = 512, .sink = 0};

// `windowed` layers with a window before each one without.
std::vector<StoredLayer> pattern(std::size_t layers, std::size_t windowed, std::int32_t wide_heads = 4) {
  std::vector<StoredLayer> all;
  for (std::size_t i = 0; i < layers; ++i)
    all.push_back((i + 1) % (windowed + 1) == 0 ? StoredLayer{kAll, wide_heads, 64} : StoredLayer{kWindow, 4, 64});
  return all;
}

TEST(KvGroups, LayersThatSeeAlikeAreOneGroup) {
  const KvGroups groups = group_layers(std::vector<StoredLayer>(7, {kWindow, 4, 64}), 16, kernels::KvType::kF16);
  ASSERT_EQ(groups.count(), 1);
  EXPECT_EQ(groups.layout(0).layers, 7);
  EXPECT_EQ(groups.groups[0].visibility, kWindow);
  EXPECT_EQ(groups.block_bytes(), groups.layout(0).block_bytes());
}

TEST(KvGroups, EverySecondLayerWithAWindowMakesTwoOfTheSameSize) {
  const KvGroups groups = group_layers(pattern(26, 1), 16, kernels::KvType::kF16);
  ASSERT_EQ(groups.count(), 2);
  EXPECT_EQ(groups.groups[0].visibility, kAll) << "those that see everything first";
  EXPECT_EQ(groups.groups[1].visibility, kWindow);
  EXPECT_EQ(groups.unused_bytes(0) + groups.unused_bytes(1), 0U);
  EXPECT_EQ(groups.places[0].group, 1);
  EXPECT_EQ(groups.places[25].group, 0);
  EXPECT_EQ(groups.places[25].index, 12);
}

TEST(KvGroups, ManyLayersOfOneKindMakeSeveralSoThatLittleIsUnused) {
  const KvGroups groups = group_layers(pattern(26, 5), 16, kernels::KvType::kF16);
  std::size_t unused = 0;
  for (std::int32_t group = 0; group < groups.count(); ++group) unused += groups.unused_bytes(group);
  EXPECT_LE(unused * 8, static_cast<std::size_t>(groups.count()) * groups.block_bytes());
  EXPECT_LE(groups.count(), 7);
}

TEST(KvGroups, LayersOfDifferentHeadsHaveLayoutsOfTheirOwn) {
  const KvGroups groups = group_layers(pattern(12, 5, 2), 16, kernels::KvType::kF16);
  for (std::size_t layer = 0; layer < 12; ++layer)
    EXPECT_EQ(groups.layout(groups.places[layer].group).kv_heads, (layer + 1) % 6 == 0 ? 2 : 4) << layer;
}

TEST(KvArena, LayersOfAllGroupsLieWithinTheirBlocks) {
  const KvGroups groups = group_layers(pattern(12, 2, 2), 8, kernels::KvType::kF32);
  const KvArena arena = KvArena::create(groups, 3).value();
  std::set<std::pair<std::int32_t, const std::byte*>> beginnings;
  for (std::int32_t layer = 0; layer < 12; ++layer) {
    const kernels::KvLayer pool = arena.layer(layer);
    const std::byte* last = arena.block(1).data() + arena.block_bytes();
    const std::byte* begin = pool.base + pool.block_stride;
    EXPECT_GE(begin, arena.block(1).data());
    EXPECT_LE(begin + groups.layout(arena.group_of(layer)).layer_bytes(), last);
    EXPECT_TRUE(beginnings.emplace(arena.group_of(layer), begin).second) << layer;
  }
}

TEST(StateLayout, PartsLieWithinBlocksAndApart) {
  const std::vector<StateShape> layers = {{10, 10}, {}, {16, 40, 16}, {48}};
  const StateLayout layout(layers, 192);
  std::set<std::pair<std::int32_t, std::size_t>> taken;  // of every float
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    for (std::size_t part = 0; part < layers[layer].size(); ++part) {
      const StateLayout::Place& place = layout.place(layer, static_cast<std::int32_t>(part));
      EXPECT_LT(place.block, layout.blocks());
      EXPECT_LE(place.offset + part_bytes(layers[layer][part]), 192U);
      for (std::int64_t i = 0; i < layers[layer][part]; ++i)
        EXPECT_TRUE(taken.emplace(place.block, place.offset + static_cast<std::size_t>(i) * sizeof(float)).second);
    }
  EXPECT_EQ(layout.blocks(), 4);  // a line each of 64, 64 and 64; 192; 64; 192
}

}  // namespace
}  // namespace braid::model
