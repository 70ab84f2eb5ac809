// What the blocks of a sequence depend on, besides the model.
#pragma once

#include "braid/media_span.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::cache {

// Whose blocks can be the same at all. Borrows.
struct Scope {
  std::string_view adapter;  // revision of what changes the weights
  std::string_view salt;     // of the tenant
  auto operator<=>(const Scope&) const = default;
};

// A sequence from its beginning. Borrows.
struct SequenceView {
  Scope scope;
  std::span<const std::int32_t> tokens;
  std::span<const MediaSpan> media;  // ascending, without overlap; what lies beyond `tokens` does not count

  SequenceView first(std::size_t count) const { return {scope, tokens.first(count), media}; }
};

// How many tokens two sequences begin with that are the same, and have the same behind them. Of different scopes: none.
std::int32_t common_length(const SequenceView& one, const SequenceView& other);

// Appends the media of positions [begin, end), counted from `begin`: what reaches beyond `end` is cut, and a negative `first` says how
// much lies before. So equal lists of a block mean equal parts of equal media.
void append_media(std::span<const MediaSpan> media, std::int32_t begin, std::int32_t end, std::vector<MediaSpan>& parts);

}  // namespace braid::cache
