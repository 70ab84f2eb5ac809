#include "text/tokenizer/pipeline/word_model.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/unicode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace braid::text {
namespace {

constexpr double kUnknownPenalty = 10.0;  // below the lowest score, as SentencePiece has it

class UnigramModel final : public WordModel {
 public:
  UnigramModel(const WordModelVocabulary& vocabulary, std::vector<double> scores, bool byte_fallback)
      : scores_(std::move(scores)), unknown_(vocabulary.unknown), byte_fallback_(byte_fallback) {
    for (std::size_t id = vocabulary.texts.size(); id-- > 0;)  // of equal texts the last counts
      trie_.insert(vocabulary.texts[id], static_cast<TokenId>(id));
    for (unsigned byte = 0; byte < 256; ++byte)
      byte_tokens_[byte] = find_token(vocabulary.ids, fmt::format("<0x{:02X}>", byte)).value_or(-1);
    double lowest = std::numeric_limits<double>::infinity();
    for (const double score : scores_) lowest = std::min(lowest, score);
    unknown_score_ = lowest - kUnknownPenalty;
  }

  // Of equally probable ways the one that was found first stays, so the order of the steps counts: ascending in start and length.
  void tokenize(std::string_view word, WordScratch&, std::vector<TokenId>& out) const override {
    std::vector<PathEnd> best(word.size() + 1);
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t size = decode_utf8(word, at).size;
      bool single = false;
      trie_.each_match(word, at, [&](TokenId token, std::size_t length) {
        extend(best[at + length], best[at].score + scores_[static_cast<std::size_t>(token)], at, token);
        single = single || length == size;
      });
      if (!single) {
        if (!unknown_) return;  // the library refuses such a text
        extend(best[at + size], best[at].score + unknown_score_, at, *unknown_);
      }
      at += size;
    }
    append_path(word, best, out);
  }

 private:
  struct PathEnd {
    double score = 0;
    std::size_t begin = std::string_view::npos;  // npos: nothing ends here yet
    TokenId token = -1;
  };

  static void extend(PathEnd& end, double score, std::size_t begin, TokenId token) {
    if (end.begin == std::string_view::npos || score > end.score) end = {score, begin, token};
  }

  // Unknown characters that follow each other become one, or their bytes.
  void append_path(std::string_view word, const std::vector<PathEnd>& best, std::vector<TokenId>& out) const {
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    bool last_unknown = false;
    for (std::size_t end = word.size(); end > 0;) {
      const PathEnd& step = best[end];
      const bool unknown = unknown_ && step.token == *unknown_;
      if (unknown && last_unknown) {
        parts.back().first = step.begin;
      } else {
        parts.emplace_back(step.begin, end);
      }
      last_unknown = unknown;
      end = step.begin;
    }
    std::for_each(parts.rbegin(), parts.rend(), [&](const auto& part) { append(word.substr(part.first, part.second - part.first), out); });
  }

  void append(std::string_view text, std::vector<TokenId>& out) const {
    const PrefixTrie::Match match = trie_.longest(text, 0);
    if (match.token >= 0 && match.size == text.size()) return out.push_back(match.token);
    const auto lacks = [this](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)] < 0; };
    if (byte_fallback_ && std::none_of(text.begin(), text.end(), lacks)) {
      for (const char byte : text) out.push_back(byte_tokens_[static_cast<unsigned char>(byte)]);
    } else if (unknown_) {
      out.push_back(*unknown_);
    }
  }

  PrefixTrie trie_;
  std::vector<double> scores_;
  std::array<TokenId, 256> byte_tokens_{};  // -1: none
  std::optional<TokenId> unknown_;
  double unknown_score_ = 0;
  bool byte_fallback_;
};

// [["text", score], …]
bool read_scores(const ConfigNode& node, WordModelVocabulary& vocabulary, std::vector<double>& scores) {
  simdjson::dom::array array;
  const auto vocab = node.find("vocab");
  if (!vocab || vocab->value().get(array) != simdjson::SUCCESS) {
    node.fail(ErrorCode::kBadFile, fmt::format("'{}.vocab' is not an array of tokens and their scores", node.path()));
    return false;
  }
  for (const simdjson::dom::element item : array) {
    simdjson::dom::array pair;
    std::string_view text;
    double score = 0;
    if (item.get(pair) != simdjson::SUCCESS || pair.size() != 2 || pair.at(0).get(text) != simdjson::SUCCESS ||
        pair.at(1).get(score) != simdjson::SUCCESS || !std::isfinite(score)) {
      vocab->fail(ErrorCode::kBadFile, fmt::format("'{}[{}]' is not a text and its score", vocab->path(), scores.size()));
      return false;
    }
    vocabulary.ids.insert_or_assign(std::string(text), static_cast<TokenId>(scores.size()));
    vocabulary.texts.emplace_back(text);
    vocabulary.scores.push_back(static_cast<float>(score));
    scores.push_back(score);
  }
  return true;
}

}  // namespace

std::unique_ptr<const WordModel> make_unigram_model(const WordModelVocabulary& vocabulary, std::vector<double> scores, bool byte_fallback) {
  return std::make_unique<UnigramModel>(vocabulary, std::move(scores), byte_fallback);
}

std::unique_ptr<const WordModel> read_unigram_model(const ConfigNode& node, WordModelVocabulary& vocabulary) {
  std::vector<double> scores;
  if (!read_scores(node, vocabulary, scores)) return nullptr;
  if (node.find("unk_id")) {
    const std::uint64_t id = node.count("unk_id");
    if (id >= scores.size()) {
      node.fail(ErrorCode::kBadFile, fmt::format("'{}.unk_id' is {}, beyond the {} tokens", node.path(), id, scores.size()));
      return nullptr;
    }
    vocabulary.unknown = static_cast<TokenId>(id);
  }
  return make_unigram_model(vocabulary, std::move(scores), node.flag_or("byte_fallback", false));
}

}  // namespace braid::text
