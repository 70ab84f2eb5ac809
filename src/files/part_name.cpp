#include "files/part_name.h"

namespace braid::files {

std::optional<PartName> part_name(std::string_view name) {
  constexpr std::string_view kForm = "-00000-of-00000";
  if (name.size() <= kForm.size()) return std::nullopt;
  PartName part{name.substr(0, name.size() - kForm.size())};
  const std::string_view suffix = name.substr(part.stem.size());
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = suffix[i] >= '0' && suffix[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : suffix[i] != kForm[i]) return std::nullopt;
  }
  for (const char digit : suffix.substr(1, 5)) part.number = part.number * 10 + static_cast<std::size_t>(digit - '0');
  return part;
}

}  // namespace braid::files
