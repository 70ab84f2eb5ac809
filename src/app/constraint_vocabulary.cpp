#include "app/constraint_vocabulary.h"

#include <utility>
#include <vector>

namespace braid::app {

grammar::Vocabulary constraint_vocabulary(const text::ModelCodec& codec) {
  const text::Tokenizer& tokenizer = codec.tokenizer();
  std::vector<grammar::VocabularyToken> tokens(tokenizer.vocabulary().size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const text::TokenType type = tokenizer.vocabulary().entries[i].type;
    if (type == text::TokenType::kUnused || type == text::TokenType::kUndefined) continue;
    tokens[i] = {std::string(tokenizer.token_bytes(id)), tokenizer.is_silent(id)};
  }
  const auto ends = codec.end_of_generation();
  return {std::move(tokens), {ends.begin(), ends.end()}};
}

}  // namespace braid::app
