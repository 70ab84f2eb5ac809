#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/merge_table.h"
#include "text/tokenizer/piece_encoder.h"
#include "text/tokenizer/pre_tokenizer.h"

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
  BytePairEncoder(PreTokenizer rules, Merges merges, std::size_t vocabulary_size, std::unordered_map<std::string, TokenId> whole_words,
                  std::optional<TokenId> unknown)
      : rules_(rules), merges_(std::move(merges)), vocabulary_size_(static_cast<PieceId>(vocabulary_size)),
        whole_words_(std::move(whole_words)), unknown_(unknown) {}

  void encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    std::vector<std::string_view> words;
    split_words(rules_, text, words);
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

  PreTokenizer rules_;
  Merges merges_;
  PieceId vocabulary_size_;
  std::unordered_map<std::string, TokenId> whole_words_;  // empty unless a word that is a token needs no merges
  std::optional<TokenId> unknown_;
};

class MergesReader {
 public:
  explicit MergesReader(Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  Result<Merges> read(const files::GgufFile& file) {
    const files::GgufValue* value = file.find("tokenizer.ggml.merges");
    const auto* array = value != nullptr ? std::get_if<files::GgufArray>(value) : nullptr;
    const auto* lines = array != nullptr ? std::get_if<std::vector<std::string>>(&array->items) : nullptr;
    if (lines == nullptr)
      return Error{
          ErrorCode::kBadFile, file.name() + ": found no 'tokenizer.ggml.merges', expected the merges of the byte-level BPE tokenizer", {}};
    spell_bytes();
    merges_.table.reserve(lines->size());
    for (std::size_t rank = 0; rank < lines->size(); ++rank) {
      const std::string_view line = (*lines)[rank];
      const std::size_t space = line.find(' ', 1);
      if (space == std::string_view::npos || space + 1 == line.size())
        return Error{ErrorCode::kBadFile,
                     fmt::format("{}: merge {} of 'tokenizer.ggml.merges' is not two pieces with a space between", file.name(), rank),
                     {}};
      add(line.substr(0, space), line.substr(space + 1), static_cast<float>(rank));
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

}  // namespace

Result<std::unique_ptr<const PieceEncoder>> make_byte_pair_encoder(const files::GgufFile& file, Vocabulary& vocabulary) {
  auto pre = file.string_or("tokenizer.ggml.pre", "");
  if (!pre) return pre.error();
  if (pre->empty()) {
    vocabulary.warnings.push_back("the model does not name its pre-tokenizer (tokenizer.ggml.pre): 'default' is used and may be wrong");
    *pre = "default";
  }
  const auto rules = pre_tokenizer_named(*pre);
  if (!rules) return Error{rules.error().code, file.name() + ": " + rules.error().message, {}};
  auto merges = MergesReader(vocabulary).read(file);
  if (!merges) return merges.error();
  std::unordered_map<std::string, TokenId> whole_words;
  if (*rules == PreTokenizer::kLlama3) {  // its tokenizer was trained elsewhere: not every token can be reached by the merges
    whole_words.reserve(vocabulary.size());
    for (std::size_t id = 0; id < vocabulary.size(); ++id)
      if (vocabulary.entries[id].type == TokenType::kNormal)
        if (auto bytes = spelt_bytes(vocabulary.entries[id].text)) whole_words.emplace(std::move(*bytes), static_cast<TokenId>(id));
  }
  return std::unique_ptr<const PieceEncoder>(
      std::make_unique<BytePairEncoder>(*rules, std::move(*merges), vocabulary.size(), std::move(whole_words), vocabulary.unknown));
}

}  // namespace braid::text
