// Cuts text into words by the rules of the most common byte-level BPE vocabularies, without regular expressions.
#pragma once

#include <string_view>
#include <vector>

namespace braid::text {

enum class PreTokenizer { kDefault, kGpt2, kLlama3, kQwen2, kDeepSeek, kSingleDigits };

// Appends the words of `text`; together they are the whole text. Linear in the text.
void split_words(PreTokenizer rules, std::string_view text, std::vector<std::string_view>& words);

}  // namespace braid::text
