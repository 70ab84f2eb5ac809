#include "grammar/json/formats.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace braid::grammar::json {
namespace {

// RFC 3339 from the year 100 on, without leap seconds; days by month, February to 28.
#define BRAID_DATE                                                                                                                 \
  "([1-9][0-9]{3}|0[1-9][0-9]{2})-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|" \
  "2[0-8]))"
#define BRAID_TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define BRAID_LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
#define BRAID_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define BRAID_HEX4 "[0-9A-Fa-f]{1,4}"

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kFormats = {{
    {"date", BRAID_DATE},
    {"time", BRAID_TIME},
    {"date-time", BRAID_DATE "T" BRAID_TIME},
    {"duration",
     "P([0-9]{1,4}W|[0-9]{1,4}Y([0-9]{1,4}M([0-9]{1,4}D)?)?|[0-9]{1,4}M([0-9]{1,4}D)?|[0-9]{1,4}D|"
     "([0-9]{1,4}D)?T([0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S))"},
    {"uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"},
    {"email", "[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,30}){0,2}@" BRAID_LABEL "(\\." BRAID_LABEL "){1,4}"},
    {"hostname", BRAID_LABEL "(\\." BRAID_LABEL "){0,6}"},
    {"ipv4", BRAID_BYTE "(\\." BRAID_BYTE "){3}"},
    {"ipv6", "(" BRAID_HEX4 ":){7}" BRAID_HEX4 "|::(" BRAID_HEX4 "(:" BRAID_HEX4 "){0,5})?|" BRAID_HEX4 "::(" BRAID_HEX4 "(:" BRAID_HEX4
             "){0,4})?"},
    {"uri", "[A-Za-z][A-Za-z0-9+.-]{0,20}://" BRAID_LABEL "(\\." BRAID_LABEL "){0,6}(:[1-9][0-9]{0,3})?(/[A-Za-z0-9_.~-]{0,100}){0,20}"
            "(\\?[A-Za-z0-9_.~=&-]{0,200})?(#[A-Za-z0-9_.~-]{0,100})?"},
    {"json-pointer", "(/([A-Za-z0-9_.-]|~[01]){0,60}){0,20}"},
    {"byte", "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"},
}};

#undef BRAID_DATE
#undef BRAID_TIME
#undef BRAID_LABEL
#undef BRAID_BYTE
#undef BRAID_HEX4

}  // namespace

std::optional<std::string_view> format_pattern(std::string_view format) {
  const auto* found = std::find_if(kFormats.begin(), kFormats.end(), [&](const auto& entry) { return entry.first == format; });
  if (found == kFormats.end()) return std::nullopt;
  return found->second;
}

}  // namespace braid::grammar::json
