#include "text/tokenizer/piece_encoder.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/unicode.h"

namespace braid::text {
namespace {

constexpr std::string_view kWordStart = "\u2581";

bool stands_alone(char32_t code, CharClass kind) {
  return kind == CharClass::kPunctuation || (code < 0x7f && kind == CharClass::kSymbol) || is_bert_ideograph(code);
}

class WordPieceEncoder final : public PieceEncoder {
 public:
  WordPieceEncoder(PrefixTrie trie, std::optional<TokenId> unknown) : trie_(std::move(trie)), unknown_(unknown) {}

  void encode(std::string_view text, bool, std::vector<TokenId>& out) const override {
    std::string word(kWordStart);
    const auto finish_word = [&] {
      if (word.size() > kWordStart.size()) encode_word(word, out);
      word.resize(kWordStart.size());
    };
    const std::string plain = without_accents(valid_only(text));
    for (std::size_t at = 0; at < plain.size();) {
      const Utf8Char c = decode_utf8(plain, at);
      at += c.size;
      const CharClass kind = char_class(c.code);
      if (kind == CharClass::kSpace) {
        finish_word();
      } else if (kind == CharClass::kControl || c.code == 0 || c.code == 0xfffd) {
        continue;
      } else if (stands_alone(c.code, kind)) {
        finish_word();
        append_utf8(word, to_lower(c.code));
        finish_word();
      } else {
        append_utf8(word, to_lower(c.code));
      }
    }
    finish_word();
  }

 private:
  static std::string valid_only(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Char c = decode_utf8(text, at);
      if (c.code != kInvalidByte) out += text.substr(at, c.size);
      at += c.size;
    }
    return out;
  }

  // A word that cannot be covered wholly is one unknown token.
  void encode_word(std::string_view word, std::vector<TokenId>& out) const {
    const std::size_t before = out.size();
    for (std::size_t at = 0; at < word.size();) {
      const PrefixTrie::Match match = trie_.longest(word, at);
      if (match.token < 0) {
        out.resize(before);
        if (unknown_) out.push_back(*unknown_);
        return;
      }
      out.push_back(match.token);
      at += match.size;
    }
  }

  PrefixTrie trie_;
  std::optional<TokenId> unknown_;
};

}  // namespace

Result<std::unique_ptr<const PieceEncoder>> make_word_piece_encoder(Vocabulary& vocabulary) {
  PrefixTrie trie;
  for (std::size_t id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.entries[id].type != TokenType::kControl) trie.insert(vocabulary.entries[id].text, static_cast<TokenId>(id));
  return std::unique_ptr<const PieceEncoder>(std::make_unique<WordPieceEncoder>(std::move(trie), vocabulary.unknown));
}

}  // namespace braid::text
