#include "text/tokenizer/pipeline/normalizer.h"
#include "text/tokenizer/unicode.h"

namespace braid::text {
namespace {

class BertNormalizer final : public Normalizer {
 public:
  BertNormalizer(bool clean_text, bool handle_ideographs, bool strip_accents, bool lowercase)
      : clean_text_(clean_text), handle_ideographs_(handle_ideographs), strip_accents_(strip_accents), lowercase_(lowercase) {}

  void apply(NormalizedText& text) const override {
    map_characters(text, [this](char32_t code, std::string& out) { clean(code, out); });
    if (strip_accents_) {
      apply_normal_form(NormalForm::kD, text);
      map_characters(text, [](char32_t code, std::string& out) {
        if (!is_nonspacing_mark(code)) append_utf8(out, code);
      });
    }
    if (lowercase_) map_characters(text, [](char32_t code, std::string& out) { append_lower(out, code); });
  }

 private:
  void clean(char32_t code, std::string& out) const {
    const CharClass kind = char_class(code);
    const bool control = kind == CharClass::kControl || code == 0xb || code == 0xc || code == 0x85;
    if (clean_text_ && (code == 0 || code == 0xfffd || control)) return;
    if (clean_text_ && kind == CharClass::kSpace) {
      out += ' ';
    } else if (handle_ideographs_ && is_bert_ideograph(code)) {
      out += ' ';
      append_utf8(out, code);
      out += ' ';
    } else {
      append_utf8(out, code);
    }
  }

  bool clean_text_, handle_ideographs_, strip_accents_, lowercase_;
};

}  // namespace

std::unique_ptr<const Normalizer> make_bert_normalizer(bool clean_text, bool handle_ideographs, bool strip_accents, bool lowercase) {
  return std::make_unique<BertNormalizer>(clean_text, handle_ideographs, strip_accents, lowercase);
}

}  // namespace braid::text
