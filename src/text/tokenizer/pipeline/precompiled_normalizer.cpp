#include "text/tokenizer/base64.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/pipeline/normalizer.h"
#include "text/tokenizer/unicode.h"

#include <utility>

namespace braid::text {
namespace {

// As the tokenizers library applies a charsmap, which is not as SentencePiece does: a grapheme of less than six bytes becomes what the
// shortest key that it begins with stands for; otherwise its characters do.
class PrecompiledNormalizer final : public Normalizer {
 public:
  explicit PrecompiledNormalizer(Charsmap map) : map_(std::move(map)) {}

  void apply(NormalizedText& text) const override {
    constexpr std::size_t kLongest = 6;
    std::string out;
    out.reserve(text.text.size());
    std::size_t origin = 0;
    for (std::size_t at = 0; at < text.text.size();) {
      const std::string_view grapheme = first_grapheme(std::string_view(text.text).substr(at));
      const bool whole = grapheme.size() < kLongest && append_mapped(grapheme, out);
      if (whole && at < text.origin) origin = out.size();
      for (std::size_t i = 0; i < grapheme.size() && !whole;) {
        const std::size_t size = decode_utf8(grapheme, i).size;
        if (!append_mapped(grapheme.substr(i, size), out)) out += grapheme.substr(i, size);
        if (at + i < text.origin) origin = out.size();
        i += size;
      }
      at += grapheme.size();
    }
    // Where the first character became nothing, the library takes the next one for it.
    if (text.origin > 0 && origin == 0 && !out.empty()) origin = 1;
    text = {std::move(out), origin};
  }

 private:
  bool append_mapped(std::string_view text, std::string& out) const {
    const Charsmap::Match match = map_.shortest(text);
    out += match.by;
    return match.size > 0;
  }

  Charsmap map_;
};

}  // namespace

std::unique_ptr<const Normalizer> read_precompiled_normalizer(const ConfigNode& node) {
  const auto bytes = decode_base64(node.text("precompiled_charsmap"));
  auto map = bytes ? Charsmap::read(*bytes) : std::nullopt;
  if (map) return std::make_unique<PrecompiledNormalizer>(std::move(*map));
  node.fail(ErrorCode::kBadFile, "'" + node.path() + ".precompiled_charsmap' is damaged: it is no table of SentencePiece's in base64");
  return nullptr;
}

}  // namespace braid::text
