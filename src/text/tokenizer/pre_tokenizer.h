// Cuts text into the words within which a byte-level BPE vocabulary merges, as tokenizer.ggml.pre names the rules.
#pragma once

#include "braid/result.h"

#include <string_view>
#include <vector>

namespace braid::text {

enum class PreTokenizer { kDefault, kGpt2, kLlama3, kQwen2, kDeepSeek, kSingleDigits };

// kUnsupported for a name that is not known: the message lists those that are.
Result<PreTokenizer> pre_tokenizer_named(std::string_view name);

// Appends the words of `text`; together they are the whole text. Linear in the text.
void split_words(PreTokenizer rules, std::string_view text, std::vector<std::string_view>& words);

}  // namespace braid::text
