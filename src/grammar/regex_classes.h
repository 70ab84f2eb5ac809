// What \d, \w, \s and `.` of a regular expression match. The dialects disagree beyond ASCII, so that each class has two sets: what it
// matches in every dialect, and what it matches in some.
#pragma once

#include "grammar/code_points.h"

#include <optional>
#include <string_view>

namespace braid::grammar {

struct CharacterClass {
  CodePointSet certain;
  CodePointSet possible;

  // Of a class or its opposite what no dialect leaves out; `in_doubt`: and what some dialect takes in.
  CodePointSet set(bool in_doubt) const { return in_doubt ? possible : certain; }
  CodePointSet opposite(bool in_doubt) const { return (in_doubt ? certain : possible).complement(); }
};

CharacterClass digit_class();
CharacterClass word_class();
CharacterClass space_class();

// Characters that have the Unicode property, as in \p{Lu}, in every version: not all that do. nullopt where it is not known here.
std::optional<CodePointSet> property_set(std::string_view name);

// ECMA-262's, which JSON Schema names; the other dialects' are among them.
CodePointSet line_terminators();

}  // namespace braid::grammar
