#include "libraries/fmt.h"

#include <fmt/format.h>

#if FMT_VERSION >= 90000 && FMT_VERSION < 100000
template void fmt::detail::vformat_to<char>(buffer<char>&, basic_string_view<char>, basic_format_args<FMT_BUFFER_CONTEXT(char)>,
                                            locale_ref);
#endif
