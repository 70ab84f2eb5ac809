// What changes a text before it is cut: the "normalizer" of tokenizer.json.
#pragma once

#include "text/tokenizer/pipeline/config_node.h"
#include "text/tokenizer/unicode.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace braid::text {

struct NormalizedText {
  std::string text;        // valid UTF-8
  std::size_t origin = 0;  // bytes at its beginning that stem from the first character of the whole text
};

// Writes a text anew character by character: map(code, out) appends what one becomes.
template <class Map>
void map_characters(NormalizedText& text, Map map) {
  std::string out;
  out.reserve(text.text.size());
  std::size_t origin = 0;
  for (std::size_t at = 0; at < text.text.size();) {
    const Utf8Char c = decode_utf8(text.text, at);
    map(c.code, out);
    if (at < text.origin) origin = out.size();
    at += c.size;
  }
  text = {std::move(out), origin};
}

void apply_normal_form(NormalForm form, NormalizedText& text);

// Immutable: any thread may use it.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;
};

// Null when `node` has none that is known: the fault is then in the node.
std::unique_ptr<const Normalizer> read_normalizer(const ConfigNode& node);

// Those of normalizers of their own files.
std::unique_ptr<const Normalizer> read_precompiled_normalizer(const ConfigNode& node);
std::unique_ptr<const Normalizer> make_bert_normalizer(bool clean_text, bool handle_ideographs, bool strip_accents, bool lowercase);

}  // namespace braid::text
