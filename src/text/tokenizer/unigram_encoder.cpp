#include "text/tokenizer/piece_encoder.h"
#include "text/tokenizer/pipeline/word_model.h"
#include "text/tokenizer/sentence_normalizer.h"
#include "text/tokenizer/unicode.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::text {
namespace {

class UnigramEncoder final : public PieceEncoder {
 public:
  UnigramEncoder(SentenceNormalizer normalizer, std::unique_ptr<const WordModel> model)
      : normalizer_(std::move(normalizer)), model_(std::move(model)) {}

  void encode(std::string_view text, bool at_start, std::vector<TokenId>& out) const override {
    const std::string normal = normalizer_.apply(valid_utf8(text), at_start);
    WordScratch scratch;
    if (!normal.empty()) model_->tokenize(normal, scratch, out);
  }

 private:
  SentenceNormalizer normalizer_;
  std::unique_ptr<const WordModel> model_;
};

// Control tokens never come from text, and byte tokens only for what nothing else spells.
bool is_matched(TokenType type) { return type == TokenType::kNormal || type == TokenType::kUserDefined || type == TokenType::kUnused; }

}  // namespace

Result<std::unique_ptr<const PieceEncoder>> make_unigram_encoder(Vocabulary& vocabulary, const SentenceRules& rules) {
  auto normalizer = SentenceNormalizer::make(rules);
  if (!normalizer) return normalizer.error();
  WordModelVocabulary pieces;
  std::vector<double> scores;
  double lowest = 0;
  for (const VocabularyEntry& entry : vocabulary.entries)
    if (entry.type == TokenType::kNormal) lowest = std::min(lowest, static_cast<double>(entry.score));
  bool has_bytes = false;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const VocabularyEntry& entry = vocabulary.entries[id];
    const bool matched = is_matched(entry.type);
    has_bytes = has_bytes || entry.type == TokenType::kByte;
    pieces.texts.push_back(matched ? entry.text : std::string());
    if (matched || entry.type == TokenType::kByte) pieces.ids.emplace(entry.text, static_cast<TokenId>(id));
    // What a model's user has defined wins over pieces; the score of what is not matched does not count.
    scores.push_back(entry.type == TokenType::kUserDefined ? 0.0 : matched ? static_cast<double>(entry.score) : lowest);
  }
  pieces.unknown = vocabulary.unknown;
  if (!pieces.unknown) vocabulary.warnings.push_back("the unigram tokenizer names no unknown token: text that it cannot spell is left out");
  return std::unique_ptr<const PieceEncoder>(
      std::make_unique<UnigramEncoder>(std::move(*normalizer), make_unigram_model(pieces, std::move(scores), has_bytes)));
}

}  // namespace braid::text
