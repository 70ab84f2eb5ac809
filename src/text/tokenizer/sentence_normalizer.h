// SentencePiece's way of normalizing a text: its rules of characters, then spaces as U+2581.
#pragma once

#include "braid/result.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/piece_encoder.h"

#include <optional>
#include <string>
#include <string_view>

namespace braid::text {

// Immutable: any thread may use it.
class SentenceNormalizer {
 public:
  // kBadFile when the charsmap is damaged.
  static Result<SentenceNormalizer> make(const SentenceRules& rules);

  // `at_start`: the text begins the whole text or follows a special token.
  std::string apply(std::string_view text, bool at_start) const;

 private:
  SentenceNormalizer(const SentenceRules& rules, std::optional<Charsmap> map);
  std::string mapped(std::string_view text) const;

  std::optional<Charsmap> map_;
  bool add_space_, remove_extra_, space_is_suffix_;
};

}  // namespace braid::text
