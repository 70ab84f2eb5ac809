#include "net/generation/other_words.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace braid::net {
namespace {

// The words by their beginnings.
struct Beginnings {
  std::map<char, std::unique_ptr<Beginnings>> longer;
  bool is_word = false;

  void add(std::string_view word) {
    if (word.empty()) {
      is_word = true;
      return;
    }
    std::unique_ptr<Beginnings>& next = longer[word.front()];
    if (next == nullptr) next = std::make_unique<Beginnings>();
    next->add(word.substr(1));
  }
};

Beginnings beginnings_of(const std::vector<std::string>& words) {
  Beginnings root;
  for (const std::string& word : words) root.add(word);
  return root;
}

// What may follow a beginning so that it is none of a word: an expression, or nothing that may.
using Parting = std::function<std::optional<std::string>(const Beginnings& at)>;

// Alternatives, each behind a bar. A group is opened only where words part, since groups may not nest deep.
void collect(const Beginnings& at, const std::string& before, const Parting& parting, std::string& out) {
  if (const auto part = parting(at)) out += "|" + escaped(before) + *part;
  for (const auto& [letter, next] : at.longer) {
    if (at.longer.size() == 1) {
      collect(*next, before + letter, parting, out);
    } else {
      std::string inner;
      collect(*next, "", parting, inner);
      if (!inner.empty()) out += "|" + escaped(before + letter) + "(?:" + inner.substr(1) + ")";
    }
  }
}

std::string letters(const Beginnings& at) {
  std::string out;
  for (const auto& [letter, next] : at.longer) out += escaped(std::string_view(&letter, 1));
  return out;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ' ' ||
                          static_cast<unsigned char>(c) >= 0x80;
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out.append(is_plain ? "" : "\\").push_back(c);
    }
  }
  return out;
}

std::string strings_but(const std::vector<std::string>& words) {
  const Beginnings all = beginnings_of(words);
  std::string parted;
  collect(
      all, "", [](const Beginnings& at) { return "[^\"\\\\" + letters(at) + "]"; }, parted);
  std::string shorter;  // a beginning of a word
  collect(
      all, "", [](const Beginnings& at) { return at.is_word ? std::nullopt : std::optional<std::string>(""); }, shorter);
  return "(?:(?:" + parted.substr(1) + R"re()(?:[^"\\]|\\.)*"|(?:)re" + shorter.substr(1) + ")\")";
}

std::string no_call_of(const std::vector<std::string>& words, std::string_view never) {
  std::string out;
  collect(
      beginnings_of(words), "", [never](const Beginnings& at) { return "[^" + escaped(never) + letters(at) + (at.is_word ? "\\(]" : "]"); },
      out);
  return "(?:" + out.substr(1) + ")";
}

}  // namespace braid::net
