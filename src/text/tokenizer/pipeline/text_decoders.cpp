#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/byte_name.h"
#include "text/tokenizer/pipeline/pattern.h"
#include "text/tokenizer/pipeline/text_decoder.h"
#include "text/tokenizer/unicode.h"
#include "text/tokenizer/utf8_stream.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace braid::text {
namespace {

std::string joined(const std::vector<std::string>& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  if (what.empty()) return text;
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, begin)) {
    out.append(text, begin, at - begin).append(by);
    begin = at + what.size();
  }
  return out.append(text, begin);
}

class SpacingDecoder final : public TextDecoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, 1, ' ');
  }
  std::string bytes(std::string token) const override { return ' ' + token; }
};

class ByteLevelDecoder final : public TextDecoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    Utf8Stream stream;
    std::string text;
    for (std::string& token : tokens) stream.append(bytes(std::move(token)), text);
    stream.finish(text);
    tokens = {std::move(text)};
  }
  std::string bytes(std::string token) const override {
    auto spelt = spelt_bytes(token);
    return spelt ? std::move(*spelt) : token;
  }
};

class ByteFallbackDecoder final : public TextDecoder {
 public:
  // Bytes that follow each other are a text, or each of them is U+FFFD.
  void decode(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string run;
    const auto finish_run = [&] {
      std::string text = valid_utf8(run);
      if (text == run) {
        if (!run.empty()) out.push_back(std::move(text));
      } else {
        out.insert(out.end(), run.size(), "\ufffd");
      }
      run.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = named_byte(token)) {
        run += *byte;
        continue;
      }
      finish_run();
      out.push_back(std::move(token));
    }
    finish_run();
    tokens = std::move(out);
  }
  std::string bytes(std::string token) const override {
    const auto byte = named_byte(token);
    return byte ? std::string(1, *byte) : token;
  }
};

class MetaspaceDecoder final : public TextDecoder {
 public:
  MetaspaceDecoder(std::string mark, bool prepended) : mark_(std::move(mark)), prepended_(prepended) {}
  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = replaced(std::move(tokens[i]), mark_, i == 0 && prepended_ ? "" : " ");
  }
  std::string bytes(std::string token) const override { return replaced(std::move(token), mark_, " "); }

 private:
  std::string mark_;
  bool prepended_;
};

class FuseDecoder final : public TextDecoder {
 public:
  void decode(std::vector<std::string>& tokens) const override { tokens = {joined(tokens)}; }
  std::string bytes(std::string token) const override { return token; }
};

class ReplaceDecoder final : public TextDecoder {
 public:
  ReplaceDecoder(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) token = bytes(std::move(token));
  }
  std::string bytes(std::string token) const override {
    std::vector<TextSpan> spans;
    Pattern::Searcher(pattern_).find(token, spans);
    std::string out;
    for (const TextSpan& span : spans) out += span.is_match ? content_ : token.substr(span.begin, span.end - span.begin);
    return out;
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class StripDecoder final : public TextDecoder {
 public:
  StripDecoder(std::string content, std::uint64_t start, std::uint64_t stop) : content_(std::move(content)), start_(start), stop_(stop) {}
  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) token = bytes(std::move(token));
  }
  std::string bytes(std::string token) const override {
    std::string_view rest = token;
    for (std::uint64_t i = 0; i < start_ && rest.starts_with(content_); ++i) rest.remove_prefix(content_.size());
    for (std::uint64_t i = 0; i < stop_ && rest.ends_with(content_); ++i) rest.remove_suffix(content_.size());
    return std::string(rest);
  }

 private:
  std::string content_;
  std::uint64_t start_, stop_;
};

// English punctuation and contractions lose the space before them.
std::string cleaned_up(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                                                      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                                                      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, by] : kRules) text = replaced(std::move(text), what, by);
  return text;
}

class WordPieceDecoder final : public TextDecoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = i == 0 ? finished(std::move(tokens[i])) : bytes(std::move(tokens[i]));
  }
  std::string bytes(std::string token) const override {
    return finished(token.starts_with(prefix_) ? token.substr(prefix_.size()) : ' ' + token);
  }

 private:
  std::string finished(std::string text) const { return cleanup_ ? cleaned_up(std::move(text)) : text; }

  std::string prefix_;
  bool cleanup_;
};

class SuffixDecoder final : public TextDecoder {
 public:
  explicit SuffixDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = replaced(std::move(tokens[i]), suffix_, i + 1 < tokens.size() ? " " : "");
  }
  std::string bytes(std::string token) const override { return replaced(std::move(token), suffix_, " "); }

 private:
  std::string suffix_;
};

// Of equal tokens that follow each other, as CTC models write them, one counts.
class CtcDecoder final : public TextDecoder {
 public:
  CtcDecoder(std::string pad, std::string delimiter, bool cleanup)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  void decode(std::vector<std::string>& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) token = bytes(std::move(token));
    std::erase(tokens, std::string());
  }
  std::string bytes(std::string token) const override {
    token = replaced(std::move(token), pad_, "");
    return cleanup_ ? replaced(cleaned_up(std::move(token)), delimiter_, " ") : token;
  }

 private:
  std::string pad_, delimiter_;
  bool cleanup_;
};

class DecoderSequence final : public TextDecoder {
 public:
  explicit DecoderSequence(std::vector<std::unique_ptr<const TextDecoder>> parts) : parts_(std::move(parts)) {}
  void decode(std::vector<std::string>& tokens) const override {
    for (const auto& part : parts_) part->decode(tokens);
  }
  // What stands behind Fuse sees the whole text: Strip then treats its ends only.
  std::string bytes(std::string token) const override {
    bool fused = false;
    for (const auto& part : parts_) {
      fused = fused || dynamic_cast<const FuseDecoder*>(part.get()) != nullptr;
      if (!fused || dynamic_cast<const StripDecoder*>(part.get()) == nullptr) token = part->bytes(std::move(token));
    }
    return token;
  }

 private:
  std::vector<std::unique_ptr<const TextDecoder>> parts_;
};

std::unique_ptr<const TextDecoder> read_decoder_sequence(const ConfigNode& node) {
  std::vector<std::unique_ptr<const TextDecoder>> parts;
  for (const ConfigNode& item : node.items("decoders")) {
    parts.push_back(read_text_decoder(item));
    if (node.failed()) return nullptr;
  }
  return std::make_unique<DecoderSequence>(std::move(parts));
}

std::unique_ptr<const TextDecoder> read_replace_decoder(const ConfigNode& node) {
  auto pattern = read_pattern(node);
  if (!pattern) return nullptr;
  return std::make_unique<ReplaceDecoder>(std::move(*pattern), node.text("content"));
}

std::unique_ptr<const TextDecoder> read_metaspace_decoder(const ConfigNode& node) {
  const std::string scheme = node.text_or("prepend_scheme", node.flag_or("add_prefix_space", true) ? "always" : "never");
  return std::make_unique<MetaspaceDecoder>(node.text_or("replacement", "\u2581"), scheme != "never");
}

std::unique_ptr<const TextDecoder> read_strip_decoder(const ConfigNode& node) {
  const std::string content = node.text("content");
  if (content.empty()) node.fail(ErrorCode::kBadFile, "'" + node.path() + ".content' is not one character");
  return std::make_unique<StripDecoder>(content, node.count_or("start", 0), node.count_or("stop", 0));
}

}  // namespace

std::unique_ptr<const TextDecoder> read_text_decoder(const std::optional<ConfigNode>& absent_or_node) {
  if (!absent_or_node) return std::make_unique<SpacingDecoder>();
  const ConfigNode& node = *absent_or_node;
  const std::string type = node.text("type");
  if (node.failed()) return nullptr;
  if (type == "ByteLevel") return std::make_unique<ByteLevelDecoder>();
  if (type == "Metaspace") return read_metaspace_decoder(node);
  if (type == "ByteFallback") return std::make_unique<ByteFallbackDecoder>();
  if (type == "Fuse") return std::make_unique<FuseDecoder>();
  if (type == "Replace") return read_replace_decoder(node);
  if (type == "Strip") return read_strip_decoder(node);
  if (type == "WordPiece") return std::make_unique<WordPieceDecoder>(node.text_or("prefix", "##"), node.flag_or("cleanup", true));
  if (type == "BPEDecoder") return std::make_unique<SuffixDecoder>(node.text_or("suffix", "</w>"));
  if (type == "CTC")
    return std::make_unique<CtcDecoder>(node.text_or("pad_token", "<pad>"), node.text_or("word_delimiter_token", "|"),
                                        node.flag_or("cleanup", true));
  if (type == "Sequence") return read_decoder_sequence(node);
  node.refuse_type(type,
                   "'BPEDecoder', 'ByteFallback', 'ByteLevel', 'CTC', 'Fuse', 'Metaspace', 'Replace', 'Sequence', 'Strip', 'WordPiece'");
  return nullptr;
}

}  // namespace braid::text
