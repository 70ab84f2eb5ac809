// Tokens of an answer that are guessed before they are computed. Whatever is guessed, the answer is the same: it is there sooner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace braid {

// What a request, or the server for those that say nothing, wants guessed from.
enum class DraftMethod : std::uint8_t {
  kAuto,    // whatever there is, as far as it pays
  kOff,     // nothing
  kNgram,   // what followed the same tokens in its own prompt and answer
  kSuffix,  // the same in recent answers to the same client
  kDraft,   // a small model
  kMtp,     // the model's own heads for tokens further on
};

inline constexpr std::array<std::string_view, 6> kDraftMethodNames = {"auto", "off", "ngram", "suffix", "draft", "mtp"};

inline std::optional<DraftMethod> draft_method_of(std::string_view name) {
  for (std::size_t i = 0; i < kDraftMethodNames.size(); ++i)
    if (kDraftMethodNames[i] == name) return static_cast<DraftMethod>(i);
  return std::nullopt;
}

struct Speculation {
  DraftMethod method = DraftMethod::kAuto;
  std::int32_t max_tokens = 0;                                       // guessed at once at most; 0: as many as the server allows
  std::shared_ptr<const std::vector<std::int32_t>> prediction = {};  // tokens that the answer may consist of; null: none
};

// Where a guessed token came from.
enum class DraftSource : std::uint8_t {
  kPrediction,  // the request's own
  kNgram,
  kSuffix,
  kDraft,
  kMtp,
  kGrammar,  // its constraint allows no other
};

inline constexpr std::array<std::string_view, 6> kDraftSourceNames = {"prediction", "ngram", "suffix", "draft", "mtp", "grammar"};

// How many tokens were guessed, and how many of them were right, by source and by place among those guessed at once; the last place stands
// for all further ones. Only grow.
struct DraftStats {
  static constexpr std::size_t kSources = kDraftSourceNames.size();
  static constexpr std::size_t kPlaces = 8;
  using Counts = std::array<std::array<std::uint64_t, kPlaces>, kSources>;

  Counts drafted{};
  Counts accepted{};
  std::uint64_t read = 0;  // tokens of texts that models which guess computed, because nobody had before
};

}  // namespace braid
