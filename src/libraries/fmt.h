// fmt 9's headers lack this line of the versions before and after, and so each file that formats into a buffer would compile the whole
// formatter.
#pragma once

#include <fmt/core.h>

#if FMT_VERSION >= 90000 && FMT_VERSION < 100000
namespace fmt::detail {
extern template void vformat_to<char>(buffer<char>&, basic_string_view<char>, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
}
#endif
