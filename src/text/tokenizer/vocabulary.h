// The vocabulary of a model as its GGUF metadata gives it (tokenizer.ggml.*).
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/text_codec.h"
#include "files/gguf.h"
#include "text/tokenizer/word_rules.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace braid::text {

inline constexpr std::string_view kEscapedSpace = "\u2581";  // stands for a space in a token of SentencePiece

enum class TokenizerKind { kSentencePiece, kUnigram, kBytePair, kCharacterPair, kWordPiece };

// Values as in tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t { kUndefined = 0, kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct VocabularyEntry {
  std::string text;  // as in the file: with U+2581 for spaces, or in the byte-level alphabet
  float score = 0.0F;
  TokenType type = TokenType::kNormal;
};

struct Vocabulary {
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;  // `ids` views the texts of `entries`: movable, not copyable
  Vocabulary& operator=(Vocabulary&&) = default;

  TokenizerKind kind = TokenizerKind::kSentencePiece;
  std::vector<VocabularyEntry> entries;               // by token id
  std::unordered_map<std::string_view, TokenId> ids;  // by text

  std::optional<TokenId> bos, eos, unknown;
  std::vector<TokenId> end_of_generation;  // sorted: eos, eot, eom and tokens with the usual names of those
  std::optional<InfillTokens> infill;      // if it has all three
  bool add_bos = false;                    // for WordPiece: [CLS] as bos, [SEP] as eos
  bool add_eos = false;
  std::optional<WordRules> words;     // of byte-level and character BPE
  bool special_strips_right = false;  // white space after most special tokens belongs to them (Phi-3)
  std::vector<std::string> warnings;

  std::size_t size() const { return entries.size(); }
  std::optional<TokenId> find(std::string_view text) const;
};

// kUnsupported for a tokenizer.ggml.model that is not known, kBadFile for what contradicts itself.
Result<Vocabulary> read_vocabulary(const files::GgufFile& file);

}  // namespace braid::text
