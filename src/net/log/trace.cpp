#include "net/log/trace.h"

#include <algorithm>

namespace braid::net {
namespace {

constexpr std::size_t kTraceIdDigits = 32;
constexpr std::size_t kSpanIdDigits = 16;
constexpr std::size_t kLeastLength = 2 + 1 + kTraceIdDigits + 1 + kSpanIdDigits + 1 + 2;

bool is_small_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_nonzero_id(std::string_view text) { return is_small_hex(text) && text.find_first_not_of('0') != std::string_view::npos; }

}  // namespace

// VERSION-TRACE-SPAN-FLAGS; a later version than 00 may have more behind another dash.
std::optional<TraceParent> parse_traceparent(std::string_view text) {
  if (text.size() < kLeastLength || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  const std::string_view trace = text.substr(3, kTraceIdDigits);
  const std::string_view span = text.substr(36, kSpanIdDigits);
  const std::string_view flags = text.substr(53, 2);
  if (!is_small_hex(version) || version == "ff" || !is_nonzero_id(trace) || !is_nonzero_id(span) || !is_small_hex(flags))
    return std::nullopt;
  if (text.size() > kLeastLength && (version == "00" || text[kLeastLength] != '-')) return std::nullopt;
  const char low = flags[1];
  const int digit = low <= '9' ? low - '0' : low - 'a' + 10;
  return TraceParent{std::string(trace), std::string(span), (digit & 1) != 0};
}

}  // namespace braid::net
