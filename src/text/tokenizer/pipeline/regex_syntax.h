// Regular expressions as the tokenizers library reads them (Oniguruma, Ruby's syntax), written for PCRE2.
#pragma once

#include <string>
#include <string_view>

namespace braid::text {

// The same expression in Perl's syntax. What is no valid expression stays one that PCRE2 refuses.
std::string perl_syntax(std::string_view expression);

}  // namespace braid::text
