// The alphabet in which byte-level BPE vocabularies spell bytes: a printable character for each of the 256
// (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners").
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace braid::text {

// The spelling of one byte.
std::string spell_byte(unsigned char byte);

// The bytes that `text` spells; nothing when a character is not of the alphabet.
std::optional<std::string> spelt_bytes(std::string_view text);

}  // namespace braid::text
