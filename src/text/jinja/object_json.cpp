// json.dumps() of Python, byte for byte.
#include "text/jinja/object_text.h"
#include "text/jinja/unicode_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace braid::text::jinja {
namespace {

bool key_less(const Object& left, const Object& right) {
  std::size_t steps = 1;
  return Comparison(steps).order(left, right) == -1;
}

class JsonWriter {
 public:
  JsonWriter(std::string& out, const JsonStyle& style, std::size_t limit) : out_(out), style_(style), limit_(limit) {}

  bool write(const Object& value) {
    if (const auto* string = value.text()) {
      write_text(*string);
    } else if (value.is_none()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.truth() ? "true" : "false";
    } else if (value.is_float()) {
      write_float(value.to_double());
    } else if (const auto* number = value.integer()) {
      fmt::format_to(std::back_inserter(out_), "{}", *number);
    } else if (const auto* members = value.dict()) {
      return write_dict(*members);
    } else if (const auto* list = value.sequence(); list != nullptr && list->kind <= Sequence::Kind::kTuple) {
      return write_list(*list);
    } else {
      return false;
    }
    return out_.size() <= limit_;
  }

 private:
  void write_text(std::string_view text) {
    out_.push_back('"');
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      const std::int32_t c = next_code_point(text, at);
      static constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b";
      static constexpr std::string_view kLetters = "\"\\nrtfb";
      const auto escape = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
      if (escape != std::string_view::npos) {
        out_.push_back('\\');
        out_.push_back(kLetters[escape]);
      } else if (c < 0x20 || (style_.ascii && c > 0x7E)) {
        write_escape(c);
      } else {
        out_.append(text.substr(begin, at - begin));
      }
    }
    out_.push_back('"');
  }

  void write_escape(std::int32_t c) {
    if (c >= 0x10000) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10));
      c = 0xDC00 + ((c - 0x10000) & 0x3FF);
    }
    fmt::format_to(std::back_inserter(out_), "\\u{:04x}", c);
  }

  void write_float(double value) {
    if (std::isnan(value)) {
      out_ += "NaN";
    } else if (std::isinf(value)) {
      out_ += value < 0 ? "-Infinity" : "Infinity";
    } else {
      append_float(out_, value);
    }
  }

  void break_line() {
    if (!style_.pretty) return;
    out_.push_back('\n');
    for (int i = 0; i < level_; ++i) out_ += style_.indent;
  }

  void separate(bool first) {
    if (!first) out_ += style_.item_separator;
    break_line();
  }

  bool write_list(const Sequence& list) {
    if (list.items.empty()) {
      out_ += "[]";
      return true;
    }
    if (level_ > 2 * kMaxValueDepth) return false;
    out_.push_back('[');
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      separate(i == 0);
      if (!write(list.items[i])) return false;
    }
    --level_;
    break_line();
    out_.push_back(']');
    return true;
  }

  bool write_key(const Object& key) {
    if (const auto* string = key.text()) {
      write_text(*string);
      return true;
    }
    if (key.sequence() != nullptr || key.callable() != nullptr) return false;
    out_.push_back('"');
    const bool written = write(key);
    out_.push_back('"');
    return written;
  }

  bool write_dict(const Dict& members) {
    if (level_ > 2 * kMaxValueDepth) return false;
    if (members.items().empty()) {
      out_ += "{}";
      return true;
    }
    std::vector<const Dict::Item*> items;
    for (const auto& item : members.items()) items.push_back(&item);
    if (style_.sort_keys)
      std::stable_sort(items.begin(), items.end(), [](const auto* a, const auto* b) { return key_less(a->first, b->first); });
    out_.push_back('{');
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      separate(i == 0);
      if (!write_key(items[i]->first)) return false;
      out_ += style_.key_separator;
      if (!write(items[i]->second)) return false;
    }
    --level_;
    break_line();
    out_.push_back('}');
    return true;
  }

  std::string& out_;
  const JsonStyle& style_;
  std::size_t limit_;
  int level_ = 0;
};

}  // namespace

bool append_json(std::string& out, const Object& value, const JsonStyle& style, std::size_t limit) {
  return JsonWriter(out, style, limit).write(value);
}

}  // namespace braid::text::jinja
