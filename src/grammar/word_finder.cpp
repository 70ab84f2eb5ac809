#include "grammar/word_finder.h"

#include "grammar/grammar.h"

namespace braid::grammar {

WordFinder::WordFinder(const std::vector<std::string>& words) : places_(1) {
  for (const std::string& word : words) {
    std::size_t at = 0;
    for (const char byte : word) {
      const bool within_name = places_[at].is_within_name || byte == kControlByte;
      const auto [step, fresh] = places_[at].steps.try_emplace(static_cast<std::uint8_t>(byte), places_.size());
      at = step->second;
      if (!fresh) continue;
      places_.emplace_back();
      places_.back().is_within_name = within_name;
    }
    places_[at].is_end = true;
  }
  find_fallbacks();
}

std::size_t WordFinder::after(std::size_t place, std::uint8_t byte) const {
  if (places_[place].is_within_name && !places_[place].steps.contains(byte)) return kNowhere;
  const std::size_t to = step(place, byte);
  return to == 0 && static_cast<char>(byte) == kControlByte ? kNowhere : to;
}

// Shorter beginnings first: each is settled by what it falls back to.
void WordFinder::find_fallbacks() {
  std::vector<std::size_t> by_length = {0};
  for (std::size_t i = 0; i < by_length.size(); ++i) {
    const std::size_t from = by_length[i];
    for (const auto& [byte, to] : places_[from].steps) {
      if (from != 0) places_[to].fallback = step(places_[from].fallback, byte);
      places_[to].is_end = places_[to].is_end || places_[places_[to].fallback].is_end;
      by_length.push_back(to);
    }
  }
}

std::size_t WordFinder::step(std::size_t place, std::uint8_t byte) const {
  while (place != 0 && !places_[place].steps.contains(byte)) place = places_[place].fallback;
  const auto found = places_[place].steps.find(byte);
  return found != places_[place].steps.end() ? found->second : 0;
}

}  // namespace braid::grammar
