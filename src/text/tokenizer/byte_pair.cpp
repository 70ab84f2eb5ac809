#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/merge_table.h"
#include "text/tokenizer/piece_encoder.h"
#include "text/tokenizer/unicode.h"
#include "text/tokenizer/word_cutter.h"

#include <array>
#include <fmt/format.h>
#include <unordered_map>

namespace braid::text {
namespace {

struct Merges {
  MergeTable table;
  std::array<PieceId, 256> first_piece{};  // of a byte
  // How pieces that are no tokens are spelt in bytes; ids from vocabulary size on.
  std::vector<std::string> unnamed;
};

class BytePairEncoder final : public PieceEncoder {
 public:
  BytePairEncoder(WordCutter cutter, Merges merges, std::size_t vocabulary_size, std::unordered_map<std::string, TokenId> whole_words,
                  std::optional<TokenId> unknown)
      : cutter_(std::move(cutter)), merges_(std::move(merges)), vocabulary_size_(static_cast<PieceId>(vocabulary_size)),
        whole_words_(std::move(whole_words)), unknown_(unknown) {}

  void encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    std::vector<std::string_view> words;
    cutter_.cut(text, words);
    std::vector<Piece> pieces;
    MergeTable::Scratch scratch;
    std::string key;
    for (const std::string_view word : words) {
      if (!whole_words_.empty()) {
        key.assign(word);
        if (const auto found = whole_words_.find(key); found != whole_words_.end()) {
          out.push_back(found->second);
          continue;
        }
      }
      pieces.clear();
      for (std::size_t i = 0; i < word.size(); ++i)
        pieces.push_back({merges_.first_piece[static_cast<unsigned char>(word[i])], static_cast<std::uint32_t>(i), 1});
      merges_.table.merge(pieces, scratch);
      for (const Piece& piece : pieces)
        if (piece.size > 0) append(piece.id, out);
    }
  }

 private:
  void append(PieceId id, std::vector<TokenId>& out) const {
    if (id < vocabulary_size_) return out.push_back(id);
    const std::string& bytes = merges_.unnamed[static_cast<std::size_t>(id - vocabulary_size_)];
    for (const char byte : bytes) {
      const PieceId single = merges_.first_piece[static_cast<unsigned char>(byte)];
      if (single < vocabulary_size_) {
        out.push_back(single);
      } else if (unknown_) {
        out.push_back(*unknown_);
      }
    }
  }

  WordCutter cutter_;
  Merges merges_;
  PieceId vocabulary_size_;
  std::unordered_map<std::string, TokenId> whole_words_;  // empty unless a word that is a token needs no merges
  std::optional<TokenId> unknown_;
};

class MergesReader {
 public:
  explicit MergesReader(Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  Result<Merges> read(const files::GgufFile& file) {
    const auto pairs = read_merge_pairs(file);
    if (!pairs) return pairs.error();
    spell_bytes();
    merges_.table.reserve(pairs->size());
    for (std::size_t rank = 0; rank < pairs->size(); ++rank) add((*pairs)[rank].first, (*pairs)[rank].second, static_cast<float>(rank));
    return std::move(merges_);
  }

  // Two neighbours merge when together they spell a token; the lower its rank, the sooner.
  Merges from_ranks() {
    spell_bytes();
    for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
      if (vocabulary_.entries[id].type != TokenType::kNormal) continue;
      const std::string_view text = vocabulary_.entries[id].text;
      for (std::size_t at = decode_utf8(text, 0).size; at < text.size(); at += decode_utf8(text, at).size) {
        const auto left = vocabulary_.find(text.substr(0, at));
        const auto right = vocabulary_.find(text.substr(at));
        if (left && right) merges_.table.add(*left, *right, -static_cast<float>(id), static_cast<PieceId>(id));
      }
    }
    return std::move(merges_);
  }

 private:
  void spell_bytes() {
    int missing = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::string spelling = spell_byte(static_cast<unsigned char>(byte));
      merges_.first_piece[byte] = piece(spelling);
      if (merges_.first_piece[byte] >= static_cast<PieceId>(vocabulary_.size())) ++missing;
    }
    if (missing > 0)
      vocabulary_.warnings.push_back(
          fmt::format("the vocabulary has no token for {} of the 256 bytes: text with them loses them", missing));
  }

  void add(std::string_view left, std::string_view right, float rank) {
    const std::string merged = std::string(left).append(right);
    const PieceId left_id = piece(left);
    const PieceId right_id = piece(right);
    merges_.table.add(left_id, right_id, -rank, piece(merged));
  }

  PieceId piece(std::string_view spelling) {
    if (const auto token = vocabulary_.find(spelling)) return *token;
    const auto next = static_cast<PieceId>(vocabulary_.size() + merges_.unnamed.size());
    const auto [entry, added] = unnamed_ids_.emplace(std::string(spelling), next);
    if (added) merges_.unnamed.push_back(spelt_bytes(spelling).value_or(std::string()));
    return entry->second;
  }

  Vocabulary& vocabulary_;
  Merges merges_;
  std::unordered_map<std::string, PieceId> unnamed_ids_;
};

// Tokens that need no merges: not every token of such a vocabulary can be reached by them.
std::unordered_map<std::string, TokenId> words_by_bytes(const Vocabulary& vocabulary) {
  std::unordered_map<std::string, TokenId> words;
  words.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.entries[id].type == TokenType::kNormal)
      if (auto bytes = spelt_bytes(vocabulary.entries[id].text)) words.emplace(std::move(*bytes), static_cast<TokenId>(id));
  return words;
}

}  // namespace

Result<std::vector<std::pair<std::string_view, std::string_view>>> read_merge_pairs(const files::GgufFile& file) {
  const files::GgufValue* value = file.find("tokenizer.ggml.merges");
  const auto* array = value != nullptr ? std::get_if<files::GgufArray>(value) : nullptr;
  const auto* lines = array != nullptr ? std::get_if<std::vector<std::string>>(&array->items) : nullptr;
  if (lines == nullptr)
    return Error{
        ErrorCode::kBadFile, file.name() + ": found no 'tokenizer.ggml.merges', expected the merges of the byte-level BPE tokenizer", {}};
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  pairs.reserve(lines->size());
  for (const std::string_view line : *lines) {
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size())
      return Error{ErrorCode::kBadFile,
                   fmt::format("{}: merge {} of 'tokenizer.ggml.merges' is not two pieces with a space between", file.name(), pairs.size()),
                   {}};
    pairs.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return pairs;
}

Result<std::unique_ptr<const PieceEncoder>> make_byte_pair_encoder(const files::GgufFile& file, const WordRules& rules,
                                                                   Vocabulary& vocabulary) {
  auto cutter = WordCutter::make(rules);
  if (!cutter) return cutter.error();
  // Kimi-K2's files have no merges: the tokens' ranks are their ids.
  const bool ranked = rules.name == "kimi-k2" && file.find("tokenizer.ggml.merges") == nullptr;
  auto merges = ranked ? Result<Merges>(MergesReader(vocabulary).from_ranks()) : MergesReader(vocabulary).read(file);
  if (!merges) return merges.error();
  auto whole_words = rules.whole_words_first || ranked ? words_by_bytes(vocabulary) : std::unordered_map<std::string, TokenId>();
  return std::unique_ptr<const PieceEncoder>(std::make_unique<BytePairEncoder>(std::move(*cutter), std::move(*merges), vocabulary.size(),
                                                                               std::move(whole_words), vocabulary.unknown));
}

std::unique_ptr<const PieceEncoder> make_ranked_encoder(WordCutter cutter, Vocabulary& vocabulary) {
  Merges merges = MergesReader(vocabulary).from_ranks();
  return std::make_unique<BytePairEncoder>(std::move(cutter), std::move(merges), vocabulary.size(), words_by_bytes(vocabulary),
                                           vocabulary.unknown);
}

}  // namespace braid::text
