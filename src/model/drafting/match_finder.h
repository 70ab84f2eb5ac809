// Finds what followed the last tokens of a text where they stood before.
#pragma once

#include "braid/generation_request.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// A growing text, and chains of the places where the same few tokens end. A text that nobody asks about is only kept: it is indexed when
// find() is called, as far as it has grown.
class MatchFinder {
 public:
  static constexpr std::size_t kGram = 3;         // tokens that two places have in common at least
  static constexpr std::size_t kMostCommon = 32;  // more are not counted

  struct Match {
    std::size_t next = 0;    // of the text: what followed
    std::size_t common = 0;  // tokens before it that are also the last ones; 0: there is no such place
  };

  void clear();
  void append(std::span<const TokenId> tokens) { text_.insert(text_.end(), tokens.begin(), tokens.end()); }
  void append(TokenId token) { text_.push_back(token); }
  std::span<const TokenId> text() const { return text_; }

  // Of the latest kTries places the one that has most in common with the end, the latest of several.
  Match find();

 private:
  static constexpr int kTries = 16;
  static constexpr std::int32_t kNone = -1;

  std::size_t bucket(std::size_t end) const;  // of the kGram tokens that end before `end`
  void index();
  void grow();
  std::size_t common_before(std::size_t place) const;

  std::vector<TokenId> text_;
  std::vector<std::int32_t> before_;  // for each end of a gram, the end of the one before it in the same bucket
  std::vector<std::int32_t> last_;    // [buckets]
};

}  // namespace braid::model
