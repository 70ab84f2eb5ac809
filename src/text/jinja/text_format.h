// Python's two ways to format text: "%s" % value and "{}".format(value).
#pragma once

#include "text/jinja/native.h"

#include <string_view>

namespace braid::text::jinja {

// `values` is a tuple, a dict (for "%(name)s"), or one value.
Object percent_format(Runtime& runtime, std::string_view format, const Object& values);
Object brace_format(Runtime& runtime, std::string_view format, const Arguments& arguments);

}  // namespace braid::text::jinja
