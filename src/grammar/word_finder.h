// Where one of several words first occurs in bytes. Aho and Corasick, "Efficient string matching" (1975).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace braid::grammar {

// A place for each beginning of a word: what has been read ends with it, and with no longer one. Place 0 is the beginning of all.
class WordFinder {
 public:
  // None is empty. A control token's name (kControlByte) within a word is read whole or not at all.
  explicit WordFinder(const std::vector<std::string>& words);

  std::size_t size() const { return places_.size(); }
  // Whether a word has just ended here.
  bool is_end(std::size_t place) const { return places_[place].is_end; }
  bool is_within_name(std::size_t place) const { return places_[place].is_within_name; }

  static constexpr std::size_t kNowhere = ~std::size_t{0};
  // The place after `byte`; kNowhere: it may not follow here.
  std::size_t after(std::size_t place, std::uint8_t byte) const;

 private:
  struct Place {
    std::map<std::uint8_t, std::size_t> steps;
    std::size_t fallback = 0;  // the place of the longest shorter beginning that has been read as well
    bool is_end = false;
    bool is_within_name = false;
  };

  void find_fallbacks();
  std::size_t step(std::size_t place, std::uint8_t byte) const;

  std::vector<Place> places_;
};

}  // namespace braid::grammar
