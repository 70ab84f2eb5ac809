// The rules by which a byte-level BPE vocabulary of a GGUF file cuts text into words, as tokenizer.ggml.pre names them.
#pragma once

#include "braid/result.h"
#include "text/tokenizer/pre_tokenizer.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace braid::text {

struct WordRules {
  std::string_view name;
  std::optional<PreTokenizer> scanner;       // where there is one: it finds what the expressions find
  std::span<const std::string_view> stages;  // else: regular expressions, each cutting what the one before it left
  bool whole_words_first = false;            // a word that is a token needs no merges
  bool adds_bos = false;                     // unless the file says otherwise
  bool plain_text = false;                   // the vocabulary spells characters, U+2581 for a space, and <0x00> for bytes
  bool drops_space = false;                  // white space between words is no token
};

// What GPT-2 takes for words.
inline constexpr std::string_view kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// The name of the rules that cut by these expressions one after the other, of several rather that with the same `whole_words_first`.
std::optional<std::string_view> name_of_rules(std::span<const std::string> stages, bool whole_words_first);

// kUnsupported for a name that is not known: the message lists those that are. The rules live as long as the program.
Result<const WordRules*> word_rules_named(std::string_view name);

}  // namespace braid::text
