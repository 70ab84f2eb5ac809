#include "text/tokenizer/pipeline/pattern.h"
#include "text/tokenizer/pipeline/splitter.h"
#include "text/tokenizer/unicode.h"

#include <cctype>
#include <optional>
#include <utility>
#include <vector>

namespace braid::text {
namespace {

class SplitterSequence final : public Splitter {
 public:
  explicit SplitterSequence(std::vector<std::unique_ptr<const Splitter>> parts) : parts_(std::move(parts)) {}
  void split(PieceList& list) const override {
    for (const auto& part : parts_) part->split(list);
  }

 private:
  std::vector<std::unique_ptr<const Splitter>> parts_;
};

// Splits at the characters that are wanted(code).
template <class Wanted>
class CharacterSplitter final : public Splitter {
 public:
  CharacterSplitter(Wanted wanted, SplitBehavior behavior) : wanted_(wanted), behavior_(behavior) {}
  void split(PieceList& list) const override {
    cut_pieces(list, [this](std::string_view text, std::vector<TextSpan>& spans) {
      find_characters(text, wanted_, spans);
      apply_behavior(behavior_, spans);
    });
  }

 private:
  Wanted wanted_;
  SplitBehavior behavior_;
};

template <class Wanted>
std::unique_ptr<const Splitter> at_characters(Wanted wanted, SplitBehavior behavior) {
  return std::make_unique<CharacterSplitter<Wanted>>(wanted, behavior);
}

bool is_space_character(char32_t code) { return char_class(code) == CharClass::kSpace; }
bool is_number_character(char32_t code) { return char_class(code) == CharClass::kNumber; }
bool is_punctuation_character(char32_t code) {
  return (code < 0x80 && std::ispunct(static_cast<int>(code)) != 0) || char_class(code) == CharClass::kPunctuation;
}

// \w+|[^\w\s]+
void find_words(std::string_view text, std::vector<TextSpan>& spans) {
  int last = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    const int kind = is_word_character(c.code) ? 1 : is_space_character(c.code) ? 0 : 2;
    if (kind != 0 && kind == last) {
      spans.back().end = at + c.size;
    } else if (kind != 0) {
      spans.push_back({at, at + c.size, false});
    }
    last = kind;
    at += c.size;
  }
}

class WordSplitter final : public Splitter {
 public:
  void split(PieceList& list) const override { cut_pieces(list, find_words); }
};

class BertSplitter final : public Splitter {
 public:
  void split(PieceList& list) const override {
    cut_pieces(list, [](std::string_view text, std::vector<TextSpan>& spans) {
      find_characters(text, is_space_character, spans);
      apply_behavior(SplitBehavior::kRemoved, spans);
    });
    cut_pieces(list, [](std::string_view text, std::vector<TextSpan>& spans) { find_characters(text, is_punctuation_character, spans); });
  }
};

class PatternSplitter final : public Splitter {
 public:
  PatternSplitter(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void split(PieceList& list) const override {
    Pattern::Searcher searcher(pattern_);
    cut_pieces(list, [&](std::string_view text, std::vector<TextSpan>& spans) {
      searcher.find(text, spans);
      if (invert_)
        for (TextSpan& span : spans) span.is_match = !span.is_match;
      apply_behavior(behavior_, spans);
    });
  }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class LengthSplitter final : public Splitter {
 public:
  explicit LengthSplitter(std::uint64_t length) : length_(length) {}
  void split(PieceList& list) const override {
    cut_pieces(list, [this](std::string_view text, std::vector<TextSpan>& spans) {
      std::uint64_t count = 0;
      for (std::size_t at = 0; at < text.size(); ++count) {
        if (count % length_ == 0) spans.push_back({at, at, false});
        at += decode_utf8(text, at).size;
        spans.back().end = at;
      }
    });
  }

 private:
  std::uint64_t length_;
};

std::unique_ptr<const Splitter> read_sequence_of_splitters(const ConfigNode& node) {
  std::vector<std::unique_ptr<const Splitter>> parts;
  for (const ConfigNode& item : node.items("pretokenizers")) {
    parts.push_back(read_splitter(item));
    if (node.failed()) return nullptr;
  }
  return std::make_unique<SplitterSequence>(std::move(parts));
}

SplitBehavior read_behavior(const ConfigNode& node) {
  const std::string name = node.text_or("behavior", "Isolated");
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  if (name != "Isolated")
    node.fail(ErrorCode::kUnsupported,
              "'" + node.path() + ".behavior' is '" + name +
                  "', expected one of 'Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'");
  return SplitBehavior::kIsolated;
}

std::unique_ptr<const Splitter> read_pattern_splitter(const ConfigNode& node) {
  auto pattern = read_pattern(node);
  if (!pattern) return nullptr;
  return std::make_unique<PatternSplitter>(std::move(*pattern), read_behavior(node), node.flag_or("invert", false));
}

std::unique_ptr<const Splitter> read_delimiter_splitter(const ConfigNode& node) {
  const std::string text = node.text("delimiter");
  const char32_t delimiter = text.empty() ? 0 : decode_utf8(text, 0).code;
  if (text.empty() || decode_utf8(text, 0).size != text.size())
    node.fail(ErrorCode::kBadFile, "'" + node.path() + ".delimiter' is not one character");
  return at_characters([delimiter](char32_t code) { return code == delimiter; }, SplitBehavior::kRemoved);
}

std::unique_ptr<const Splitter> read_length_splitter(const ConfigNode& node) {
  const std::uint64_t length = node.count_or("length", 5);
  if (length == 0) node.fail(ErrorCode::kBadFile, "'" + node.path() + ".length' is 0, expected at least 1");
  return std::make_unique<LengthSplitter>(length);
}

}  // namespace

std::unique_ptr<const Splitter> read_splitter(const ConfigNode& node) {
  const std::string type = node.text("type");
  if (node.failed()) return nullptr;
  if (type == "Sequence") return read_sequence_of_splitters(node);
  if (type == "Split") return read_pattern_splitter(node);
  if (type == "ByteLevel") return read_byte_level_splitter(node);
  if (type == "Metaspace") return read_metaspace_splitter(node);
  if (type == "Whitespace") return std::make_unique<WordSplitter>();
  if (type == "WhitespaceSplit") return at_characters(is_space_character, SplitBehavior::kRemoved);
  if (type == "BertPreTokenizer") return std::make_unique<BertSplitter>();
  if (type == "Punctuation") return at_characters(is_punctuation_character, read_behavior(node));
  if (type == "Digits")
    return at_characters(is_number_character,
                         node.flag_or("individual_digits", false) ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  if (type == "Delimiter" || type == "CharDelimiterSplit") return read_delimiter_splitter(node);
  if (type == "UnicodeScripts") return make_script_splitter();
  if (type == "FixedLength") return read_length_splitter(node);
  node.refuse_type(
      type,
      "'BertPreTokenizer', 'ByteLevel', 'CharDelimiterSplit', 'Digits', 'FixedLength', 'Metaspace', 'Punctuation', 'Sequence', "
      "'Split', 'UnicodeScripts', 'Whitespace', 'WhitespaceSplit'");
  return nullptr;
}

}  // namespace braid::text
