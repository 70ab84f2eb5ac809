// "WordPiece": the longest token that a word begins with, then the longest that goes on, and so forth; otherwise the word is unknown.
#include "text/tokenizer/pipeline/word_model.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/unicode.h"

namespace braid::text {
namespace {

class LongestMatchModel final : public WordModel {
 public:
  LongestMatchModel(const TokenMap& ids, std::string_view prefix, std::uint64_t longest_word, std::optional<TokenId> unknown)
      : longest_word_(longest_word), unknown_(unknown) {
    for (const auto& [text, id] : ids) {
      begins_.insert(text, id);
      if (std::string_view(text).starts_with(prefix)) goes_on_.insert(std::string_view(text).substr(prefix.size()), id);
    }
  }

  void tokenize(std::string_view word, WordScratch&, std::vector<TokenId>& out) const override {
    const std::size_t before = out.size();
    if (!cover(word, out)) {
      out.resize(before);
      if (unknown_) out.push_back(*unknown_);
    }
  }

 private:
  bool cover(std::string_view word, std::vector<TokenId>& out) const {
    std::uint64_t characters = 0;
    for (std::size_t at = 0; at < word.size(); at += decode_utf8(word, at).size)
      if (++characters > longest_word_) return false;
    for (std::size_t at = 0; at < word.size();) {
      const PrefixTrie::Match match = (at == 0 ? begins_ : goes_on_).longest(word, at);
      if (match.token < 0) return false;
      out.push_back(match.token);
      at += match.size;
    }
    return true;
  }

  PrefixTrie begins_, goes_on_;
  std::uint64_t longest_word_;  // in characters
  std::optional<TokenId> unknown_;
};

}  // namespace

std::unique_ptr<const WordModel> read_longest_match_model(const ConfigNode& node, WordModelVocabulary& vocabulary) {
  if (!read_ids(node, vocabulary)) return nullptr;
  vocabulary.unknown = find_token(vocabulary.ids, node.text_or("unk_token", "[UNK]"));
  return std::make_unique<LongestMatchModel>(vocabulary.ids, node.text_or("continuing_subword_prefix", "##"),
                                             node.count_or("max_input_chars_per_word", 100), vocabulary.unknown);
}

}  // namespace braid::text
