// The filters by subject; find_filter() looks through all of them.
#pragma once

#include "text/jinja/native.h"

#include <string_view>

namespace braid::text::jinja {

const Native* find_text_filter(std::string_view name);
const Native* find_sequence_filter(std::string_view name);
const Native* find_web_filter(std::string_view name);
const Native* find_selection_filter(std::string_view name);  // map, select, reject and those by attribute

}  // namespace braid::text::jinja
