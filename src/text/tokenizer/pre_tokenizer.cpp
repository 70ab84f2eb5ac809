// The published rules are regular expressions, quoted where they are implemented; these scanners give the same matches without
// backtracking. Rules in several stages cut the fragments of the stage before: a fragment's end counts as the end of the text.
#include "text/tokenizer/pre_tokenizer.h"

#include "text/tokenizer/case_letters.h"
#include "text/tokenizer/unicode.h"

#include <string>

namespace braid::text {
namespace {

struct Char {
  char32_t code = 0;
  std::size_t size = 0;  // 0: the end of the fragment
  CharClass kind = CharClass::kOther;

  bool is_end() const { return size == 0; }
  bool is_letter() const { return size > 0 && kind == CharClass::kLetter; }
  bool is_number() const { return size > 0 && kind == CharClass::kNumber; }
  bool is_space() const { return size > 0 && kind == CharClass::kSpace; }
  bool is_other() const { return size > 0 && !is_letter() && !is_number() && !is_space(); }  // [^\s\p{L}\p{N}]
  bool is_newline() const { return size > 0 && (code == '\r' || code == '\n'); }
};

Char char_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {};
  const Utf8Char c = decode_utf8(text, at);
  return {c.code, c.size, char_class(c.code)};
}

// The end of the longest run of characters that are `wanted`, from `at` on.
template <class Wanted>
std::size_t run_end(std::string_view text, std::size_t at, Wanted wanted) {
  for (Char c = char_at(text, at); wanted(c); c = char_at(text, at)) at += c.size;
  return at;
}

char lower_ascii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The end of 's 't 're 've 'm 'll 'd at `at`, or `at`. In any case the long s of old prints is one too.
std::size_t contraction_end(std::string_view text, std::size_t at, bool any_case) {
  constexpr std::string_view kLongS = "\u017f";
  if (text[at] != '\'' || at + 1 >= text.size()) return at;
  if (any_case && text.substr(at + 1).starts_with(kLongS)) return at + 1 + kLongS.size();
  const auto letter = [&](std::size_t i) { return i >= text.size() ? '\0' : any_case ? lower_ascii(text[i]) : text[i]; };
  const char first = letter(at + 1);
  const char second = letter(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return at + 3;
  return at;
}

// \s+(?!\S)|\s+ : a run of white space leaves its last character to the word after it.
std::size_t space_end(std::string_view text, std::size_t at) {
  std::size_t last = at;
  std::size_t end = at;
  for (Char c = char_at(text, end); c.is_space(); c = char_at(text, end)) {
    last = end;
    end += c.size;
  }
  return end == text.size() || last == at ? end : last;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2_end(std::string_view text, std::size_t at) {
  if (const std::size_t end = contraction_end(text, at, false); end > at) return end;
  const std::size_t start = text[at] == ' ' ? at + 1 : at;
  const Char c = char_at(text, start);
  if (c.is_letter()) return run_end(text, start, [](const Char& x) { return x.is_letter(); });
  if (c.is_number()) return run_end(text, start, [](const Char& x) { return x.is_number(); });
  if (c.is_other()) return run_end(text, start, [](const Char& x) { return x.is_other(); });
  return space_end(text, at);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,n}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t llama3_end(std::string_view text, std::size_t at, int max_digits) {
  if (const std::size_t end = contraction_end(text, at, true); end > at) return end;
  const Char c = char_at(text, at);
  const auto is_letter = [](const Char& x) { return x.is_letter(); };
  if (c.is_letter()) return run_end(text, at, is_letter);
  if (!c.is_newline() && !c.is_number() && char_at(text, at + c.size).is_letter()) return run_end(text, at + c.size, is_letter);
  if (c.is_number()) {
    int digits = 0;
    return run_end(text, at, [&](const Char& x) { return x.is_number() && digits++ < max_digits; });
  }
  const std::size_t start = c.code == ' ' ? at + c.size : at;
  if (char_at(text, start).is_other()) {
    const std::size_t end = run_end(text, start, [](const Char& x) { return x.is_other(); });
    return run_end(text, end, [](const Char& x) { return x.is_newline(); });
  }
  std::size_t after_newline = at;
  run_end(text, at, [&, end = at](const Char& x) mutable {
    end += x.size;
    if (x.is_newline()) after_newline = end;
    return x.is_space();
  });
  return after_newline > at ? after_newline : space_end(text, at);
}

// Cuts `text` at the matches of a rule; matches and what lies between go to `next`. `match_end(text, at)` is the end of a match
// that begins at `at`, or `at`.
template <class MatchEnd, class Next>
void isolate(std::string_view text, MatchEnd match_end, Next next) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = match_end(text, at);
    if (end == at) {
      at += decode_utf8(text, at).size;
      continue;
    }
    if (at > begin) next(text.substr(begin, at - begin));
    next(text.substr(at, end - at));
    begin = at = end;
  }
  if (begin < text.size()) next(text.substr(begin));
}

// \s?[wanted]+
template <class Wanted>
auto spaced_run(Wanted wanted) {
  return [wanted](std::string_view text, std::size_t at) {
    const Char c = char_at(text, at);
    const std::size_t start = c.is_space() ? at + c.size : at;
    const std::size_t end = run_end(text, start, wanted);
    return end > start ? end : at;
  };
}

template <class Next>
void split_gpt2(std::string_view text, Next next) {
  isolate(text, gpt2_end, next);
}

// \p{N}, then the words of GPT-2
template <class Next>
void split_single_digits(std::string_view text, Next next) {
  const auto number = [](std::string_view t, std::size_t at) {
    const Char c = char_at(t, at);
    return c.is_number() ? at + c.size : at;
  };
  isolate(text, number, [&](std::string_view fragment) { split_gpt2(fragment, next); });
}

// [\p{P}\$\+<=>\^~\|]+, then the words of GPT-2, \p{N}+ and [0-9][0-9][0-9]
template <class Next>
void split_default(std::string_view text, Next next) {
  const auto punctuation = [](std::string_view t, std::size_t at) {
    return run_end(t, at, [](const Char& c) {
      constexpr std::u32string_view kAlso = U"$+<=>^~|";
      return c.size > 0 && (c.kind == CharClass::kPunctuation || kAlso.find(c.code) != std::u32string_view::npos);
    });
  };
  const auto numbers = [](std::string_view t, std::size_t at) { return run_end(t, at, [](const Char& c) { return c.is_number(); }); };
  const auto three_digits = [](std::string_view t, std::size_t at) {
    for (std::size_t i = at; i < at + 3; ++i)
      if (i >= t.size() || t[i] < '0' || t[i] > '9') return at;
    return at + 3;
  };
  isolate(text, punctuation, [&](std::string_view a) {
    split_gpt2(a, [&](std::string_view b) { isolate(b, numbers, [&](std::string_view c) { isolate(c, three_digits, next); }); });
  });
}

bool is_deepseek_punctuation(const Char& c) {
  if (c.size == 0 || c.is_space()) return false;
  const char32_t x = c.code;
  return (x >= '!' && x <= '/') || (x >= ':' && x <= '~') || (x >= 0xff01 && x <= 0xff0f) || (x >= 0xff1a && x <= 0xff5e) ||
         (x >= 0x2018 && x <= 0x201f) || (x >= 0x3000 && x <= 0x3002);
}

bool is_deepseek_ideograph(const Char& c) {
  if (c.size == 0 || c.is_space()) return false;
  return (c.code >= 0x0800 && c.code <= 0x9fa5) || (c.code >= 0xac00 && c.code <= 0xd7ff);
}

// \s+$
template <class Next>
void split_trailing_space(std::string_view text, Next next) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    at += c.size;
    if (!c.is_space()) kept = at;
  }
  if (kept > 0) next(text.substr(0, kept));
  if (kept < text.size()) next(text.substr(kept));
}

// [\r\n], \s?[letters with case]+, \s?[punctuation]+, \s+$, [ideographs and syllables]+, \p{N}+
template <class Next>
void split_deepseek(std::string_view text, Next next) {
  const auto newline = [](std::string_view t, std::size_t at) { return char_at(t, at).is_newline() ? at + 1 : at; };
  const auto letters = spaced_run([](const Char& c) { return c.size > 0 && is_case_letter(c.code); });
  const auto punctuation = spaced_run(is_deepseek_punctuation);
  const auto ideographs = [](std::string_view t, std::size_t at) { return run_end(t, at, is_deepseek_ideograph); };
  const auto numbers = [](std::string_view t, std::size_t at) { return run_end(t, at, [](const Char& c) { return c.is_number(); }); };
  isolate(text, newline, [&](std::string_view a) {
    isolate(a, letters, [&](std::string_view b) {
      isolate(b, punctuation, [&](std::string_view c) {
        split_trailing_space(c,
                             [&](std::string_view d) { isolate(d, ideographs, [&](std::string_view e) { isolate(e, numbers, next); }); });
      });
    });
  });
}

}  // namespace

void split_words(PreTokenizer rules, std::string_view text, std::vector<std::string_view>& words) {
  const auto add = [&](std::string_view word) { words.push_back(word); };
  switch (rules) {
    case PreTokenizer::kDefault:
      return split_default(text, add);
    case PreTokenizer::kGpt2:
      return split_gpt2(text, add);
    case PreTokenizer::kLlama3:
      return isolate(
          text, [](std::string_view t, std::size_t at) { return llama3_end(t, at, 3); }, add);
    case PreTokenizer::kQwen2:
      return isolate(
          text, [](std::string_view t, std::size_t at) { return llama3_end(t, at, 1); }, add);
    case PreTokenizer::kDeepSeek:
      return split_deepseek(text, add);
    case PreTokenizer::kSingleDigits:
      return split_single_digits(text, add);
  }
}

}  // namespace braid::text
