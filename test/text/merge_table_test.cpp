#include "text/tokenizer/merge_table.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <utility>

namespace braid::text {
namespace {

struct Rule {
  float priority;
  PieceId merged;
};
using Rules = std::map<std::pair<PieceId, PieceId>, Rule>;

// The definition: apply the best merge of all neighbours, leftmost among equals, and look again.
std::vector<PieceId> merge_naively(std::vector<PieceId> ids, const Rules& rules) {
  while (true) {
    const Rule* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto rule = rules.find({ids[i], ids[i + 1]});
      if (rule == rules.end() || (best != nullptr && rule->second.priority <= best->priority)) continue;
      best = &rule->second;
      at = i;
    }
    if (best == nullptr) return ids;
    ids[at] = best->merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(MergeTable, short_and_long_words_merge_by_the_definition) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Rules rules;
    MergeTable table;
    for (int i = 0; i < 30; ++i) {
      const auto pick = [&] { return static_cast<PieceId>(random() % 10); };
      const std::pair<PieceId, PieceId> pair{pick(), pick()};
      const Rule rule{static_cast<float>(random() % 8), pick()};  // equal priorities are frequent
      rules.emplace(pair, rule);
      table.add(pair.first, pair.second, rule.priority, rule.merged);
    }
    std::vector<PieceId> ids(random() % 60);
    for (PieceId& id : ids) id = static_cast<PieceId>(random() % 11) - 1;
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < ids.size(); ++i) pieces.push_back({ids[i], static_cast<std::uint32_t>(i), 1});
    MergeTable::Scratch scratch;
    table.merge(pieces, scratch);
    std::vector<PieceId> merged;
    std::uint32_t end = 0;
    for (const Piece& piece : pieces) {
      if (piece.size == 0) continue;
      EXPECT_EQ(piece.begin, end);
      end = piece.begin + piece.size;
      merged.push_back(piece.id);
    }
    EXPECT_EQ(end, ids.size());
    ASSERT_EQ(merged, merge_naively(ids, rules)) << "round " << round;
  }
}

TEST(MergeTable, an_empty_table_merges_nothing) {
  std::vector<Piece> pieces = {{1, 0, 1}, {2, 1, 1}};
  MergeTable::Scratch scratch;
  MergeTable().merge(pieces, scratch);
  EXPECT_EQ(pieces.size(), 2U);
}

}  // namespace
}  // namespace braid::text
