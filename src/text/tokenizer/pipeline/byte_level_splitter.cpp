// "ByteLevel" (GPT-2's words, then each byte as a character) and "Metaspace" (SentencePiece's mark for spaces): the two that write the
// text anew.
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/pipeline/splitter.h"
#include "text/tokenizer/pre_tokenizer.h"

#include <array>
#include <utility>

namespace braid::text {
namespace {

class ByteLevelSplitter final : public Splitter {
 public:
  ByteLevelSplitter(bool add_prefix_space, bool use_words) : add_prefix_space_(add_prefix_space), use_words_(use_words) {
    for (unsigned byte = 0; byte < spellings_.size(); ++byte) spellings_[byte] = spell_byte(static_cast<unsigned char>(byte));
  }

  void split(PieceList& list) const override {
    if (add_prefix_space_)
      rewrite_pieces(list, [](const TextPiece& piece, std::string_view text, std::string& out) {
        const std::size_t added = text.starts_with(' ') ? 0 : 1;
        out.append(added, ' ').append(text);
        return piece.origin > 0 ? piece.origin + added : 0;
      });
    if (use_words_) cut_into_words(list);
    rewrite_pieces(list, [this](const TextPiece& piece, std::string_view text, std::string& out) {
      const std::size_t begin = out.size();
      std::size_t origin = 0;
      for (std::size_t at = 0; at < text.size(); ++at) {
        if (at == piece.origin) origin = out.size() - begin;
        out += spellings_[static_cast<unsigned char>(text[at])];
      }
      return piece.origin >= text.size() ? out.size() - begin : origin;
    });
  }

 private:
  static void cut_into_words(PieceList& list) {
    std::vector<std::string_view> words;
    cut_pieces(list, [&](std::string_view text, std::vector<TextSpan>& spans) {
      words.clear();
      split_words(PreTokenizer::kGpt2, text, words);
      for (const std::string_view word : words) {
        const auto begin = static_cast<std::size_t>(word.data() - text.data());
        spans.push_back({begin, begin + word.size(), true});
      }
    });
  }

  bool add_prefix_space_, use_words_;
  std::array<std::string, 256> spellings_;
};

enum class PrependScheme { kAlways, kFirst, kNever };

class MetaspaceSplitter final : public Splitter {
 public:
  MetaspaceSplitter(std::string mark, PrependScheme scheme, bool split) : mark_(std::move(mark)), scheme_(scheme), split_(split) {}

  void split(PieceList& list) const override {
    rewrite_pieces(list, [this](const TextPiece& piece, std::string_view text, std::string& out) {
      const std::size_t begin = out.size();
      const bool prepend = scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && piece.origin > 0);
      if (prepend && !text.starts_with(' ') && !text.starts_with(mark_)) out += mark_;
      std::size_t origin = 0;
      for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == ' ') {
          out += mark_;
        } else {
          out += text[at];
        }
        if (at < piece.origin) origin = out.size() - begin;
      }
      return origin;
    });
    if (split_)
      cut_pieces(list, [this](std::string_view text, std::vector<TextSpan>& spans) {
        find_marks(text, spans);
        apply_behavior(SplitBehavior::kMergedWithNext, spans);
      });
  }

 private:
  void find_marks(std::string_view text, std::vector<TextSpan>& spans) const {
    std::size_t begin = 0;
    for (std::size_t at = text.find(mark_); at != std::string_view::npos; at = text.find(mark_, begin)) {
      if (begin < at) spans.push_back({begin, at, false});
      begin = at + mark_.size();
      spans.push_back({at, begin, true});
    }
    if (begin < text.size()) spans.push_back({begin, text.size(), false});
  }

  std::string mark_;
  PrependScheme scheme_;
  bool split_;
};

}  // namespace

std::unique_ptr<const Splitter> read_byte_level_splitter(const ConfigNode& node) {
  return std::make_unique<ByteLevelSplitter>(node.flag_or("add_prefix_space", true), node.flag_or("use_regex", true));
}

std::unique_ptr<const Splitter> read_metaspace_splitter(const ConfigNode& node) {
  const std::string mark = node.text_or("replacement", "\u2581");
  if (mark.empty() || decode_utf8(mark, 0).size != mark.size())
    node.fail(ErrorCode::kBadFile, "'" + node.path() + ".replacement' is not one character");
  const std::string name = node.text_or("prepend_scheme", node.flag_or("add_prefix_space", true) ? "always" : "never");
  if (name != "always" && name != "first" && name != "never")
    node.fail(ErrorCode::kUnsupported,
              "'" + node.path() + ".prepend_scheme' is '" + name + "', expected one of 'always', 'first', 'never'");
  const PrependScheme scheme = name == "first" ? PrependScheme::kFirst : name == "never" ? PrependScheme::kNever : PrependScheme::kAlways;
  return std::make_unique<MetaspaceSplitter>(mark, scheme, node.flag_or("split", true));
}

}  // namespace braid::text
