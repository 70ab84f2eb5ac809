#include "text/tokenizer/merge_table.h"
#include "text/tokenizer/piece_encoder.h"
#include "text/tokenizer/sentence_normalizer.h"
#include "text/tokenizer/unicode.h"

#include <array>
#include <fmt/format.h>
#include <unordered_map>

namespace braid::text {
namespace {

struct Pieces {
  MergeTable merges;
  std::unordered_map<char32_t, PieceId> single;  // characters that are tokens or parts of tokens
  std::array<TokenId, 256> byte_tokens{};        // -1: none
  bool words_are_apart = true;                   // no token goes on after a space that follows something else
};

class SentencePieceEncoder final : public PieceEncoder {
 public:
  SentencePieceEncoder(Pieces pieces, const Vocabulary& vocabulary, SentenceNormalizer normalizer)
      : pieces_(std::move(pieces)), vocabulary_size_(static_cast<PieceId>(vocabulary.size())), unknown_(vocabulary.unknown),
        normalizer_(std::move(normalizer)) {}

  void encode(std::string_view text, bool at_start, std::vector<TokenId>& out) const override {
    encode_escaped(normalizer_.apply(text, at_start), out);
  }

 private:
  void encode_escaped(std::string_view text, std::vector<TokenId>& out) const {
    std::vector<Piece> pieces;
    MergeTable::Scratch scratch;
    std::size_t begin = 0;
    bool after_space = true;
    for (std::size_t at = 0; at < text.size();) {
      const bool space = text.substr(at, kEscapedSpace.size()) == kEscapedSpace;
      if (pieces_.words_are_apart && space && !after_space) {
        encode_word(text.substr(begin, at - begin), pieces, scratch, out);
        begin = at;
      }
      after_space = space;
      at += decode_utf8(text, at).size;
    }
    encode_word(text.substr(begin), pieces, scratch, out);
  }

  void encode_word(std::string_view word, std::vector<Piece>& pieces, MergeTable::Scratch& scratch, std::vector<TokenId>& out) const {
    pieces.clear();
    for (std::size_t at = 0; at < word.size();) {
      const Utf8Char c = decode_utf8(word, at);
      const auto single = pieces_.single.find(c.code);
      pieces.push_back({single == pieces_.single.end() ? kNoPiece : single->second, static_cast<std::uint32_t>(at), c.size});
      at += c.size;
    }
    pieces_.merges.merge(pieces, scratch);
    for (const Piece& piece : pieces) {
      if (piece.size == 0) continue;
      if (piece.id != kNoPiece && piece.id < vocabulary_size_) {
        out.push_back(piece.id);
      } else {
        append_bytes(word.substr(piece.begin, piece.size), out);
      }
    }
  }

  // Without byte tokens a character becomes one unknown token.
  void append_bytes(std::string_view bytes, std::vector<TokenId>& out) const {
    bool lost = false;
    for (const char byte : bytes) {
      const TokenId token = pieces_.byte_tokens[static_cast<unsigned char>(byte)];
      if (token >= 0) {
        out.push_back(token);
      } else {
        lost = true;
      }
    }
    if (lost && unknown_) out.push_back(*unknown_);
  }

  Pieces pieces_;
  PieceId vocabulary_size_;
  std::optional<TokenId> unknown_;
  SentenceNormalizer normalizer_;
};

// Two neighbours merge when together they spell a token, so the merges of a token are all its cuts into two known pieces.
class PiecesBuilder {
 public:
  explicit PiecesBuilder(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  Pieces build() {
    std::size_t bytes = 0;
    for (const VocabularyEntry& entry : vocabulary_.entries) bytes += entry.text.size();
    pieces_.merges.reserve(bytes / 2);
    for (std::size_t id = 0; id < vocabulary_.size(); ++id) mergeable_.push_back(is_mergeable(id));
    for (std::size_t id = 0; id < vocabulary_.size(); ++id)
      if (mergeable_[id]) name_characters(id);
    for (std::size_t id = 0; id < vocabulary_.size(); ++id)
      if (mergeable_[id]) add_cuts(id);
    for (unsigned byte = 0; byte < 256; ++byte) pieces_.byte_tokens[byte] = byte_token(byte);
    return std::move(pieces_);
  }

 private:
  // Control tokens never come from text; byte tokens only for what nothing else spells.
  bool is_mergeable(std::size_t id) const {
    const TokenType type = vocabulary_.entries[id].type;
    return (type == TokenType::kNormal || type == TokenType::kUserDefined || type == TokenType::kUnused) &&
           vocabulary_.find(vocabulary_.entries[id].text) == static_cast<TokenId>(id);
  }

  void name_characters(std::size_t id) {
    const std::string_view text = vocabulary_.entries[id].text;
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Char c = decode_utf8(text, at);
      if (c.code != kInvalidByte) {
        if (c.size == text.size()) {
          pieces_.single[c.code] = static_cast<PieceId>(id);
        } else if (pieces_.single.emplace(c.code, next_unnamed_).second) {
          ++next_unnamed_;
        }
      }
      at += c.size;
    }
  }

  void add_cuts(std::size_t id) {
    const VocabularyEntry& entry = vocabulary_.entries[id];
    const std::string_view text = entry.text;
    bool after_space = true;
    for (std::size_t at = 0; at < text.size(); at += decode_utf8(text, at).size) {
      const bool space = text.substr(at, kEscapedSpace.size()) == kEscapedSpace;
      if (space && !after_space) pieces_.words_are_apart = false;
      after_space = space;
      if (at == 0) continue;
      const PieceId left = piece(text.substr(0, at));
      const PieceId right = piece(text.substr(at));
      if (left != kNoPiece && right != kNoPiece) pieces_.merges.add(left, right, entry.score, static_cast<PieceId>(id));
    }
  }

  PieceId piece(std::string_view text) const {
    if (const auto id = vocabulary_.find(text); id && mergeable_[static_cast<std::size_t>(*id)]) return *id;
    const Utf8Char c = decode_utf8(text, 0);
    if (c.size != text.size()) return kNoPiece;
    const auto single = pieces_.single.find(c.code);
    return single == pieces_.single.end() ? kNoPiece : single->second;
  }

  TokenId byte_token(unsigned byte) const {
    const auto named = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
    if (named) return *named;
    const char text = static_cast<char>(byte);
    return vocabulary_.find(std::string_view(&text, 1)).value_or(-1);
  }

  const Vocabulary& vocabulary_;
  Pieces pieces_;
  std::vector<bool> mergeable_;  // by token id
  PieceId next_unnamed_ = static_cast<PieceId>(vocabulary_.size());
};

}  // namespace

Result<std::unique_ptr<const PieceEncoder>> make_sentence_piece_encoder(Vocabulary& vocabulary, const SentenceRules& rules) {
  auto normalizer = SentenceNormalizer::make(rules);
  if (!normalizer) return normalizer.error();
  return std::unique_ptr<const PieceEncoder>(
      std::make_unique<SentencePieceEncoder>(PiecesBuilder(vocabulary).build(), vocabulary, std::move(*normalizer)));
}

}  // namespace braid::text
