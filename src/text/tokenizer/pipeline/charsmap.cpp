// The "Precompiled" normalizer: SentencePiece's rules as a Darts double array (Aoe 1989; its units have 32 bits), followed by the texts
// that its values point to, each with a zero behind it.
#include "text/tokenizer/pipeline/normalizer.h"
#include "text/tokenizer/unicode.h"

#include <array>
#include <cstring>
#include <optional>
#include <vector>

namespace braid::text {
namespace {

std::optional<std::string> decode_base64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>((bits >> count) & 0xffU);
  }
  return out;
}

class PrecompiledNormalizer final : public Normalizer {
 public:
  PrecompiledNormalizer(std::vector<std::uint32_t> units, std::string texts) : units_(std::move(units)), texts_(std::move(texts)) {}

  // Graphemes of less than six bytes are looked up whole first.
  void apply(NormalizedText& text) const override {
    constexpr std::size_t kLongest = 6;
    std::string out;
    out.reserve(text.text.size());
    for (std::size_t at = 0; at < text.text.size();) {
      const std::string_view grapheme = first_grapheme(std::string_view(text.text).substr(at));
      at += grapheme.size();
      if (grapheme.size() < kLongest && append_mapped(grapheme, out)) continue;
      for (std::size_t i = 0; i < grapheme.size();) {
        const std::size_t size = decode_utf8(grapheme, i).size;
        if (!append_mapped(grapheme.substr(i, size), out)) out += grapheme.substr(i, size);
        i += size;
      }
    }
    text.text = std::move(out);
  }

 private:
  // Appends what the shortest key that `text` begins with stands for.
  bool append_mapped(std::string_view text, std::string& out) const {
    const std::optional<std::uint32_t> place = look_up(text);
    if (!place || *place > texts_.size()) return false;
    const std::size_t end = std::min(texts_.find('\0', *place), texts_.size());
    out.append(texts_, *place, end - *place);
    return true;
  }

  // A unit holds the label of the byte that leads to it, whether a key ends there, and how far its children are.
  std::optional<std::uint32_t> look_up(std::string_view text) const {
    if (units_.empty()) return std::nullopt;
    std::size_t node = distance(units_[0]);
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) return std::nullopt;
      node ^= byte;
      if (node >= units_.size() || (units_[node] & 0x800000ffU) != byte) return std::nullopt;
      const bool ends = ((units_[node] >> 8) & 1U) != 0;
      node ^= distance(units_[node]);
      if (node >= units_.size()) return std::nullopt;
      if (ends) return units_[node] & 0x7fffffffU;
    }
    return std::nullopt;
  }

  static std::size_t distance(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.code == kInvalidByte) return false;
    at += c.size;
  }
  return true;
}

}  // namespace

std::unique_ptr<const Normalizer> make_precompiled_normalizer(std::string_view charsmap) {
  if (charsmap.size() < 4) return nullptr;
  const std::uint32_t size = little_endian(charsmap);
  if (size % 4 != 0 || size > charsmap.size() - 4) return nullptr;
  std::vector<std::uint32_t> units(size / 4);
  for (std::size_t i = 0; i < units.size(); ++i) units[i] = little_endian(charsmap.substr(4 + 4 * i, 4));
  std::string texts(charsmap.substr(4 + size));
  if (!is_valid_utf8(texts)) return nullptr;
  return std::make_unique<PrecompiledNormalizer>(std::move(units), std::move(texts));
}

std::unique_ptr<const Normalizer> read_precompiled_normalizer(const ConfigNode& node) {
  const auto bytes = decode_base64(node.text("precompiled_charsmap"));
  auto normalizer = bytes ? make_precompiled_normalizer(*bytes) : nullptr;
  if (normalizer == nullptr)
    node.fail(ErrorCode::kBadFile, "'" + node.path() + ".precompiled_charsmap' is damaged: it is no table of SentencePiece's in base64");
  return normalizer;
}

}  // namespace braid::text
