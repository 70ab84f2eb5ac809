#include "app/text_map.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

// Some tokenizers begin every text with a space of their own: so pieces are encoded behind this.
constexpr const char* kStart = "a";

void encode_piece(const text::ModelCodec& codec, const std::string& piece, std::vector<TokenId>& tokens) {
  const EncodeOptions options{.add_special = false, .parse_special = true};
  const Result<std::vector<TokenId>> start = codec.encode(kStart, options);
  const Result<std::vector<TokenId>> whole = codec.encode(kStart + piece, options);
  if (!start || !whole) return;
  const auto from = std::ranges::mismatch(*whole, *start).in1;
  tokens.insert(tokens.end(), from, whole->end());
}

void map_piece(const text::ModelCodec& from, const text::ModelCodec& to, std::span<const TokenId> piece, std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : piece) text += from.token_bytes(token);
  encode_piece(to, text, tokens);
}

class TextMap final : public model::TokenMap {
 public:
  TextMap(const text::ModelCodec& large, std::unique_ptr<const text::ModelCodec> small) : large_(large), small_(std::move(small)) {}

  void to_small(std::span<const TokenId> piece, std::vector<TokenId>& tokens) const override { map_piece(large_, *small_, piece, tokens); }
  void to_large(std::span<const TokenId> piece, std::vector<TokenId>& tokens) const override { map_piece(*small_, large_, piece, tokens); }

 private:
  const text::ModelCodec& large_;
  const std::unique_ptr<const text::ModelCodec> small_;
};

}  // namespace

std::optional<std::string> difference_of_tokens(const text::ModelCodec& large, const text::ModelCodec& small) {
  if (large.vocab_size() != small.vocab_size()) return fmt::format("{} tokens instead of {}", small.vocab_size(), large.vocab_size());
  for (TokenId id = 0; id < large.vocab_size(); ++id)
    if (large.token_bytes(id) != small.token_bytes(id))
      return fmt::format("token {} is '{}' instead of '{}'", id, small.token_bytes(id), large.token_bytes(id));
  return std::nullopt;
}

std::unique_ptr<const model::TokenMap> make_text_map(const text::ModelCodec& large, std::unique_ptr<const text::ModelCodec> small) {
  return std::make_unique<TextMap>(large, std::move(small));
}

}  // namespace braid::app
