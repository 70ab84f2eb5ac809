// The letters with case that the rules of DeepSeek's first tokenizer list one by one: close to Unicode's L& of that time, but
// neither a category nor free of gaps, hence a table.
#pragma once

namespace braid::text {

bool is_case_letter(char32_t code);

}  // namespace braid::text
