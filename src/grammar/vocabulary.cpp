#include "grammar/vocabulary.h"

#include "grammar/grammar.h"

#include <algorithm>

namespace braid::grammar {
namespace {

std::vector<std::string> automaton_bytes(std::vector<VocabularyToken> tokens) {
  std::vector<std::string> bytes;
  bytes.reserve(tokens.size());
  for (VocabularyToken& token : tokens) {
    if (token.control && !token.bytes.empty()) token.bytes.insert(token.bytes.begin(), kControlByte);
    // A token with a byte that is never part of UTF-8 would pass for a control token.
    if (!token.control && token.bytes.find(kControlByte) != std::string::npos) token.bytes.clear();
    bytes.push_back(std::move(token.bytes));
  }
  return bytes;
}

}  // namespace

Vocabulary::Vocabulary(std::vector<VocabularyToken> tokens, std::vector<TokenId> end_tokens)
    : end_tokens_(std::move(end_tokens)), bytes_(automaton_bytes(std::move(tokens))), trie_(bytes_) {
  std::sort(end_tokens_.begin(), end_tokens_.end());
  for (const std::string& bytes : bytes_)
    if (!bytes.empty() && bytes.front() == kControlByte) control_names_.push_back(bytes.substr(1));
  std::stable_sort(control_names_.begin(), control_names_.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

bool Vocabulary::is_end(TokenId token) const { return std::binary_search(end_tokens_.begin(), end_tokens_.end(), token); }

std::string Vocabulary::mark_control_tokens(const std::string& text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto name = std::find_if(control_names_.begin(), control_names_.end(),
                                   [&](const std::string& candidate) { return text.compare(at, candidate.size(), candidate) == 0; });
    if (name == control_names_.end()) {
      out += text[at++];
      continue;
    }
    out += kControlByte;
    out += *name;
    at += name->size();
  }
  return out;
}

}  // namespace braid::grammar
