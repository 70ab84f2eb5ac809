#include "text/tokenizer/word_cutter.h"

#include "text/tokenizer/unicode.h"

#include <utility>

namespace braid::text {

Result<WordCutter> WordCutter::make(const WordRules& rules) {
  WordCutter cutter;
  cutter.scanner_ = rules.scanner;
  cutter.drops_space_ = rules.drops_space;
  for (const std::string_view stage : rules.stages) {
    auto pattern = Pattern::from_regex(stage);
    if (!pattern) return pattern.error();
    cutter.stages_.push_back(std::move(*pattern));
  }
  return cutter;
}

Result<WordCutter> WordCutter::make(std::string_view expression) {
  WordCutter cutter;
  auto pattern = Pattern::from_regex(expression, RegexDialect::kPerl);
  if (!pattern) return pattern.error();
  cutter.stages_.push_back(std::move(*pattern));
  return cutter;
}

void WordCutter::cut(std::string_view text, std::vector<std::string_view>& words) const {
  if (scanner_) return split_words(*scanner_, text, words);
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.code == kInvalidByte) {
      cut_valid(text.substr(begin, at - begin), words);
      words.push_back(text.substr(at, 1));
      begin = at + 1;
    }
    at += c.size;
  }
  cut_valid(text.substr(begin), words);
}

void WordCutter::cut_valid(std::string_view text, std::vector<std::string_view>& words) const {
  if (text.empty()) return;
  std::vector<TextSpan> parts = {{0, text.size(), true}};
  for (const Pattern& stage : stages_) {
    Pattern::Searcher searcher(stage);
    std::vector<TextSpan> finer;
    for (const TextSpan& part : parts) {
      const std::size_t first = finer.size();
      searcher.find(text.substr(part.begin, part.end - part.begin), finer);
      for (std::size_t i = first; i < finer.size(); ++i) {
        finer[i].begin += part.begin;
        finer[i].end += part.begin;
      }
    }
    parts = std::move(finer);
  }
  for (const TextSpan& part : parts)
    if (part.begin < part.end && (part.is_match || !drops_space_)) words.push_back(text.substr(part.begin, part.end - part.begin));
}

}  // namespace braid::text
