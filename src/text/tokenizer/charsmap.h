// SentencePiece's rules for normalizing ("precompiled_charsmap"): a Darts double array (Aoe 1989; its units have 32 bits), followed by
// the texts that its values point to, each with a zero behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::text {

// Immutable: any thread may use it.
class Charsmap {
 public:
  // Nothing when the bytes are damaged.
  static std::optional<Charsmap> read(std::string_view bytes);

  struct Match {
    std::size_t size = 0;  // bytes of the key; 0: none
    std::string_view by;   // what stands for it
  };
  // The shortest and the longest key that `text` begins with.
  Match shortest(std::string_view text) const { return look_up(text, true); }
  Match longest(std::string_view text) const { return look_up(text, false); }

 private:
  Charsmap(std::vector<std::uint32_t> units, std::string texts) : units_(std::move(units)), texts_(std::move(texts)) {}
  Match look_up(std::string_view text, bool first) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace braid::text
