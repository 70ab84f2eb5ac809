// Filters for what is shown in pages: markup, addresses, sizes.
#include "text/jinja/filters.h"

#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace braid::text::jinja {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

Object run_escape(Runtime& runtime, Arguments& arguments) { return runtime.text(escaped(runtime.to_text(arguments[0]))); }

// The members of a dict as attributes of a tag; those without a value are left out.
Object run_xmlattr(Runtime& runtime, Arguments& arguments) {
  const auto* members = arguments[0].dict();
  if (members == nullptr) return arguments[0].is_undefined() ? runtime.fail_undefined(arguments[0]) : runtime.fail("xmlattr needs a dict");
  const bool spaced = !arguments.given(1) || arguments[1].truth();
  std::string out;
  for (const auto& [key, value] : members->items()) {
    if (value.is_none() || value.is_undefined()) continue;
    const auto* name = key.text();
    if (name == nullptr || name->find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      return runtime.fail("the name of an attribute is a string without white space, '/', '>' and '='");
    if (spaced || !out.empty()) out += ' ';
    out.append(escaped(*name)).append("=\"").append(escaped(runtime.to_text(value))).append("\"");
    if (runtime.failed() || out.size() > runtime.bytes_left()) return runtime.fail("the attributes are too large");
  }
  return runtime.text(std::move(out));
}

// `in_query`: "/" is encoded too, and a space is "+".
std::string url_encoded(std::string_view text, bool in_query) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' ||
                       c == '~' || (c == '/' && !in_query);
    if (plain) {
      out += c;
    } else if (c == ' ' && in_query) {
      out += '+';
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

// A text, or the pairs of a dict or list as a query.
Object run_urlencode(Runtime& runtime, Arguments& arguments) {
  const Object& value = arguments[0];
  const auto* members = value.dict();
  if (members == nullptr && value.sequence() == nullptr) return runtime.text(url_encoded(runtime.to_text(value), false));
  std::string out;
  const auto append = [&](const Object& name, const Object& content) {
    if (!out.empty()) out += '&';
    out.append(url_encoded(runtime.to_text(name), true)).append("=").append(url_encoded(runtime.to_text(content), true));
    return !runtime.failed() && out.size() <= runtime.bytes_left();
  };
  const auto too_large = [&] { return runtime.fail("an encoded query is too large"); };
  if (members != nullptr) {
    for (const auto& [name, content] : members->items())
      if (!append(name, content)) return too_large();
    return runtime.text(std::move(out));
  }
  for (const Object& item : runtime.iterate(value)) {
    const std::vector<Object> pair = runtime.iterate(item);
    if (pair.size() != 2) return runtime.fail("urlencode needs a text, a dict or pairs");
    if (!append(pair[0], pair[1])) return too_large();
  }
  return runtime.text(std::move(out));
}

Object run_filesizeformat(Runtime& runtime, Arguments& arguments) {
  Callable::Call call;
  call.positional = {arguments[0], Object(Object::None{})};
  const Object number = run_native(runtime, *find_filter("float"), std::move(call));
  if (!number.is_float()) return runtime.fail("filesizeformat needs a number");
  const bool binary = arguments.given(1) && arguments[1].truth();
  const double bytes = number.to_double();
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return Object::from_text("1 Byte");
  if (bytes < base) {
    if (std::isinf(bytes)) return runtime.fail("filesizeformat needs a number that is not infinite");
    return runtime.text(fmt::format("{:.0f} Bytes", std::trunc(bytes) + 0.0));
  }
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  long double unit = base * base;  // as Python's integers: of these, none has more than 64 bits that count
  std::size_t prefix = 0;
  for (; prefix + 1 < kPrefixes.size() && !(bytes < unit); ++prefix) unit *= base;
  const char letter = binary && prefix == 0 ? 'K' : kPrefixes[prefix];
  return runtime.text(fmt::format("{:.1f} {}{}", base * bytes / static_cast<double>(unit), letter, binary ? "iB" : "B"));
}

constexpr Native kWebFilters[] = {
    {"e", "value", run_escape},
    {"escape", "value", run_escape},
    {"filesizeformat", "value binary?", run_filesizeformat},
    {"urlencode", "value", run_urlencode},
    {"xmlattr", "d autospace?", run_xmlattr},
};

}  // namespace

const Native* find_web_filter(std::string_view name) { return find_in(kWebFilters, name); }

}  // namespace braid::text::jinja
