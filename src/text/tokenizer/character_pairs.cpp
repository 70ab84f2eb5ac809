#include "text/tokenizer/piece_encoder.h"
#include "text/tokenizer/pipeline/pair_merging_model.h"
#include "text/tokenizer/unicode.h"

#include <fmt/format.h>
#include <utility>

namespace braid::text {
namespace {

class CharacterPairEncoder final : public PieceEncoder {
 public:
  CharacterPairEncoder(WordCutter cutter, bool escapes_spaces, TokenMap newlines, std::unique_ptr<const WordModel> model)
      : cutter_(std::move(cutter)), escapes_spaces_(escapes_spaces), newlines_(std::move(newlines)), model_(std::move(model)) {}

  void encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    std::string escaped;
    for (const char c : valid_utf8(text)) {
      if (c == ' ' && escapes_spaces_) {
        escaped += kEscapedSpace;
      } else {
        escaped += c;
      }
    }
    std::vector<std::string_view> words;
    cutter_.cut(escaped, words);
    WordScratch scratch;
    for (const std::string_view word : words) {
      if (const auto token = find_token(newlines_, word)) {
        out.push_back(*token);
      } else {
        model_->tokenize(word, scratch, out);
      }
    }
  }

 private:
  WordCutter cutter_;
  bool escapes_spaces_;
  TokenMap newlines_;  // tokens of several newlines, which no merge makes
  std::unique_ptr<const WordModel> model_;
};

}  // namespace

Result<std::unique_ptr<const PieceEncoder>> make_character_pair_encoder(const files::GgufFile& file, const WordRules& rules,
                                                                        Vocabulary& vocabulary) {
  auto cutter = WordCutter::make(rules);
  if (!cutter) return cutter.error();
  const auto pairs = read_merge_pairs(file);
  if (!pairs) return pairs.error();
  PairMergingRules merging;
  TokenMap newlines;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const VocabularyEntry& entry = vocabulary.entries[id];
    if (entry.type == TokenType::kControl || entry.type == TokenType::kUnknown) continue;
    merging.ids.emplace(entry.text, static_cast<TokenId>(id));
    if (!entry.text.empty() && entry.text.find_first_not_of('\n') == std::string::npos)
      newlines.emplace(entry.text, static_cast<TokenId>(id));
  }
  for (std::size_t rank = 0; rank < pairs->size(); ++rank) {
    const auto left = find_token(merging.ids, (*pairs)[rank].first);
    const auto right = find_token(merging.ids, (*pairs)[rank].second);
    const auto merged = find_token(merging.ids, std::string((*pairs)[rank].first).append((*pairs)[rank].second));
    if (left && right && merged) merging.merges.add(*left, *right, -static_cast<float>(rank), *merged);
  }
  merging.byte_fallback = true;
  merging.unknown = vocabulary.unknown;
  return std::unique_ptr<const PieceEncoder>(std::make_unique<CharacterPairEncoder>(
      std::move(*cutter), !rules.drops_space, std::move(newlines), make_pair_merging_model(std::move(merging))));
}

}  // namespace braid::text
