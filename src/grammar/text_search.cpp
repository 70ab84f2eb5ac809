#include "grammar/text_search.h"

#include "grammar/text_language.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace braid::grammar {
namespace {

// A deterministic automaton whose edges are classes of characters.
class Search final : public TextSearch {
 public:
  explicit Search(const CharacterAutomaton& automaton)
      : classes_(automaton.classes.size()), accepting_(automaton.accepting), targets_(automaton.targets) {
    for (std::uint32_t i = 0; i < classes_; ++i)
      for (const CodePointRange& range : automaton.classes[i].ranges()) firsts_.push_back({range.first, i});
    std::sort(firsts_.begin(), firsts_.end());
    for (std::uint32_t point = 0; point < ascii_.size(); ++point) ascii_[point] = look_up(point);
  }

  std::optional<std::size_t> feed(State& state, std::string_view piece) const override {
    std::uint32_t point = 0;
    for (std::size_t at = 0; at < piece.size();) {
      if (!next_code_point(piece, at, point)) return std::nullopt;
      const std::uint32_t class_of = point < ascii_.size() ? ascii_[point] : look_up(point);
      state = targets_[state * classes_ + class_of];
      if (accepting_[state]) return at;
    }
    return std::nullopt;
  }

 private:
  // The classes cover all characters.
  std::uint32_t look_up(std::uint32_t point) const {
    const auto behind = std::upper_bound(firsts_.begin(), firsts_.end(), std::pair(point, ~std::uint32_t{0}));
    return std::prev(behind)->second;
  }

  std::size_t classes_;
  std::vector<bool> accepting_;
  std::vector<std::uint32_t> targets_;                           // [states, classes]
  std::vector<std::pair<std::uint32_t, std::uint32_t>> firsts_;  // of each range its first character, and the class
  std::array<std::uint32_t, 128> ascii_{};
};

}  // namespace

Result<std::shared_ptr<const TextSearch>> make_text_search(std::string_view pattern) {
  TextLanguages languages;
  const auto text = languages.regex(pattern);
  if (!text) return text.error();
  if (languages.matches(*text, "")) return invalid_argument("the regular expression matches the empty text");
  const auto automaton = languages.automaton(*text);
  if (!automaton) return automaton.error();
  return std::shared_ptr<const TextSearch>(std::make_shared<Search>(*automaton));
}

}  // namespace braid::grammar
