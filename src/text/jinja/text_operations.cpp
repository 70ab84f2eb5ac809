#include "text/jinja/text_operations.h"

#include "text/jinja/unicode_text.h"

#include <algorithm>

namespace braid::text::jinja {

std::vector<std::string_view> split_spaces(std::string_view text, std::int64_t limit) {
  std::vector<std::string_view> parts;
  text = strip(text, Side::kLeft);
  while (!text.empty()) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.push_back(text);
      break;
    }
    std::size_t end = 0;
    for (std::size_t next = 0; next < text.size(); end = next)
      if (is_space(next_code_point(text, next))) break;
    parts.push_back(text.substr(0, end));
    text = strip(text.substr(end), Side::kLeft);
  }
  return parts;
}

std::vector<std::string_view> split_spaces_right(std::string_view text, std::int64_t limit) {
  auto parts = split_spaces(text, -1);
  if (limit < 0 || static_cast<std::int64_t>(parts.size()) <= limit) return parts;
  const auto joined = parts.size() - static_cast<std::size_t>(limit);
  const char* end = parts[joined - 1].data() + parts[joined - 1].size();
  parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(joined));
  parts.insert(parts.begin(), text.substr(0, static_cast<std::size_t>(end - text.data())));
  return parts;
}

std::vector<std::string_view> split_by(std::string_view text, std::string_view separator, std::int64_t limit) {
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const auto at = text.find(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> split_by_right(std::string_view text, std::string_view separator, std::int64_t limit) {
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit) {
    const auto at = text.rfind(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  const auto ends_line = [](std::int32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const std::int32_t c = next_code_point(text, at);
    if (!ends_line(c)) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

Object text_list(Runtime& runtime, const std::vector<std::string_view>& parts, Sequence::Kind kind) {
  std::vector<Object> items;
  items.reserve(parts.size());
  for (const auto part : parts) {
    if (!runtime.step()) break;
    items.push_back(runtime.text(std::string(part)));
  }
  return runtime.sequence(std::move(items), kind);
}

Object replace_text(Runtime& runtime, std::string_view text, std::string_view old, std::string_view with, std::int64_t limit) {
  std::string out;
  const auto over = [&] { return out.size() > runtime.bytes_left(); };
  if (old.empty()) {
    std::size_t at = 0;
    for (std::int64_t done = 0; (limit < 0 || done < limit) && !over(); ++done) {
      out += with;
      if (at == text.size()) return runtime.text(std::move(out));
      const std::size_t begin = at;
      next_code_point(text, at);
      out += text.substr(begin, at - begin);
    }
    out += text.substr(at);
    return runtime.text(std::move(out));
  }
  for (std::int64_t done = 0; (limit < 0 || done < limit) && !over(); ++done) {
    const auto at = text.find(old);
    if (at == std::string_view::npos) break;
    out += text.substr(0, at);
    out += with;
    text.remove_prefix(at + old.size());
  }
  out += text;
  return runtime.text(std::move(out));
}

bool has_only_case(std::string_view text, bool (*wanted)(std::int32_t), bool (*unwanted)(std::int32_t)) {
  bool found = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::int32_t code_point = next_code_point(text, at);
    if (unwanted(code_point)) return false;
    found = found || wanted(code_point);
  }
  return found;
}

}  // namespace braid::text::jinja
