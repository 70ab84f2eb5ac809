// What changes a text before it is cut: the "normalizer" of tokenizer.json.
#pragma once

#include "text/tokenizer/pipeline/config_node.h"

#include <memory>
#include <string>
#include <string_view>

namespace braid::text {

struct NormalizedText {
  std::string text;        // valid UTF-8
  bool at_origin = false;  // begins with the first character of the whole text, or what it became
};

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
