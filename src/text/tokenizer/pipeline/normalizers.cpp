#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/pipeline/normalizer.h"
#include "text/tokenizer/pipeline/pattern.h"
#include "text/tokenizer/unicode.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace braid::text {
namespace {

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<const Normalizer>> parts) : parts_(std::move(parts)) {}
  void apply(NormalizedText& text) const override {
    for (const auto& part : parts_) part->apply(text);
  }

 private:
  std::vector<std::unique_ptr<const Normalizer>> parts_;
};

class UnicodeNormalizer final : public Normalizer {
 public:
  explicit UnicodeNormalizer(NormalForm form) : form_(form) {}
  void apply(NormalizedText& text) const override { apply_normal_form(form_, text); }

 private:
  NormalForm form_;
};

// Changes each character on its own: map(code, out) appends what it becomes.
template <class Map>
class CharacterNormalizer final : public Normalizer {
 public:
  explicit CharacterNormalizer(Map map) : map_(map) {}
  void apply(NormalizedText& text) const override { map_characters(text, map_); }

 private:
  Map map_;
};

template <class Map>
std::unique_ptr<const Normalizer> character_normalizer(Map map) {
  return std::make_unique<CharacterNormalizer<Map>>(map);
}

void drop_accents(char32_t code, std::string& out) {
  if (char_class(code) != CharClass::kMark) append_utf8(out, code);
}

// SentencePiece's rules "nmt": controls go, white space and what is read as such becomes a space.
void map_nmt(char32_t code, std::string& out) {
  if ((code >= 0x1 && code <= 0x8) || code == 0xb || (code >= 0xe && code <= 0x1f) || code == 0x7f || code == 0x8f || code == 0x9f) return;
  const bool space = code == 0x9 || code == 0xa || code == 0xc || code == 0xd || code == 0x1680 || (code >= 0x200b && code <= 0x200f) ||
                     code == 0x2028 || code == 0x2029 || code == 0x2581 || code == 0xfeff || code == 0xfffd;
  append_utf8(out, space ? U' ' : code);
}

void map_to_alphabet(char32_t code, std::string& out) {
  std::string bytes;
  append_utf8(bytes, code);
  for (const char byte : bytes) out += spell_byte(static_cast<unsigned char>(byte));
}

class StripNormalizer final : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}
  void apply(NormalizedText& text) const override {
    const std::size_t begin = left_ ? end_of_leading_space(text.text) : 0;
    const std::size_t end = right_ ? begin_of_trailing_space(text.text) : text.text.size();
    text.origin -= std::min(text.origin, begin);
    text.text = begin < end ? text.text.substr(begin, end - begin) : std::string();
  }

 private:
  bool left_, right_;
};

class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(std::string text) : text_(std::move(text)) {}
  void apply(NormalizedText& text) const override {
    if (text.text.empty()) return;
    text.text.insert(0, text_);
    if (text.origin > 0) text.origin += text_.size();
  }

 private:
  std::string text_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(NormalizedText& text) const override {
    std::vector<TextSpan> spans;
    Pattern::Searcher(pattern_).find(text.text, spans);
    std::string out;
    out.reserve(text.text.size());
    std::size_t origin = 0;
    for (const TextSpan& span : spans) {
      out += span.is_match ? std::string_view(content_) : std::string_view(text.text).substr(span.begin, span.end - span.begin);
      if (span.end <= text.origin) {  // what takes the place of several characters counts as the last of them
        origin = out.size();
      } else if (!span.is_match && span.begin < text.origin) {
        origin = out.size() - (span.end - text.origin);
      }
    }
    text = {std::move(out), origin};
  }

 private:
  Pattern pattern_;
  std::string content_;
};

std::unique_ptr<const Normalizer> read_sequence(const ConfigNode& node) {
  std::vector<std::unique_ptr<const Normalizer>> parts;
  for (const ConfigNode& item : node.items("normalizers")) {
    parts.push_back(read_normalizer(item));
    if (node.failed()) return nullptr;
  }
  return std::make_unique<NormalizerSequence>(std::move(parts));
}

std::unique_ptr<const Normalizer> read_replace(const ConfigNode& node) {
  auto pattern = read_pattern(node);
  if (!pattern) return nullptr;
  return std::make_unique<ReplaceNormalizer>(std::move(*pattern), node.text("content"));
}

std::unique_ptr<const Normalizer> read_bert(const ConfigNode& node) {
  const bool lowercase = node.flag_or("lowercase", true);
  return make_bert_normalizer(node.flag_or("clean_text", true), node.flag_or("handle_chinese_chars", true),
                              node.flag_or("strip_accents", lowercase), lowercase);
}

}  // namespace

// Characters that follow may join the last one of the origin, which changes none of the places where characters begin in it.
void apply_normal_form(NormalForm form, NormalizedText& text) {
  const std::size_t origin = normal_form(form, std::string_view(text.text).substr(0, text.origin)).size();
  text = {normal_form(form, text.text), origin};
}

std::unique_ptr<const Normalizer> read_normalizer(const ConfigNode& node) {
  const std::string type = node.text("type");
  if (node.failed()) return nullptr;
  if (type == "Sequence") return read_sequence(node);
  if (type == "NFC") return std::make_unique<UnicodeNormalizer>(NormalForm::kC);
  if (type == "NFD") return std::make_unique<UnicodeNormalizer>(NormalForm::kD);
  if (type == "NFKC") return std::make_unique<UnicodeNormalizer>(NormalForm::kKC);
  if (type == "NFKD") return std::make_unique<UnicodeNormalizer>(NormalForm::kKD);
  if (type == "Lowercase") return character_normalizer([](char32_t code, std::string& out) { append_lower(out, code); });
  if (type == "StripAccents") return character_normalizer(drop_accents);
  if (type == "Strip") return std::make_unique<StripNormalizer>(node.flag_or("strip_left", true), node.flag_or("strip_right", true));
  if (type == "Replace") return read_replace(node);
  if (type == "Prepend") return std::make_unique<PrependNormalizer>(node.text("prepend"));
  if (type == "Precompiled") return read_precompiled_normalizer(node);
  if (type == "Nmt") return character_normalizer(map_nmt);
  if (type == "ByteLevel") return character_normalizer(map_to_alphabet);
  if (type == "BertNormalizer") return read_bert(node);
  node.refuse_type(type,
                   "'BertNormalizer', 'ByteLevel', 'Lowercase', 'NFC', 'NFD', 'NFKC', 'NFKD', 'Nmt', 'Precompiled', 'Prepend', 'Replace', "
                   "'Sequence', 'Strip', 'StripAccents'");
  return nullptr;
}

}  // namespace braid::text
