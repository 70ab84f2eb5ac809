#include "text/jinja/object_text.h"

#include "text/jinja/unicode_text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <iterator>

namespace braid::text::jinja {
namespace {

void append_quoted(std::string& out, std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.push_back(quote);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::int32_t c = next_code_point(text, at);
    if (c == quote || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out.append(text.substr(begin, at - begin));
    } else if (c < 0x100) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", c);
    } else if (c < 0x10000) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    } else {
      fmt::format_to(std::back_inserter(out), "\\U{:08x}", c);
    }
  }
  out.push_back(quote);
}

class TextWriter {
 public:
  TextWriter(std::string& out, std::size_t limit) : out_(out), limit_(limit) {}

  bool repr(const Object& value) {
    if (const auto* string = value.text()) {
      append_quoted(out_, *string);
      return out_.size() <= limit_;
    }
    if (value.is_undefined()) out_ += "Undefined";
    return text(value);
  }

  bool text(const Object& value) {
    if (const auto* string = value.text()) {
      out_ += *string;
    } else if (value.is_none()) {
      out_ += "None";
    } else if (value.is_bool()) {
      out_ += value.truth() ? "True" : "False";
    } else if (value.is_float()) {
      append_float(out_, value.to_double());
    } else if (const auto* number = value.integer()) {
      fmt::format_to(std::back_inserter(out_), "{}", *number);
    } else if (const auto* list = value.sequence()) {
      return sequence(*list);
    } else if (const auto* members = value.dict()) {
      return dict(*members);
    } else if (const auto* function = value.callable()) {
      out_ += function->describe();
    } else if (value.name_space() != nullptr) {
      out_ += "<Namespace>";
    }
    return out_.size() <= limit_;
  }

 private:
  bool items(const std::vector<Object>& values) {
    if (++level_ > 2 * kMaxValueDepth) return false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ", ";
      if (!repr(values[i])) return false;
    }
    --level_;
    return true;
  }

  bool enclosed(std::string_view open, const std::vector<Object>& values, std::string_view close) {
    out_ += open;
    if (!items(values)) return false;
    out_ += close;
    return out_.size() <= limit_;
  }

  bool sequence(const Sequence& list) {
    switch (list.kind) {
      case Sequence::Kind::kList:
        return enclosed("[", list.items, "]");
      case Sequence::Kind::kTuple:
        return enclosed("(", list.items, list.items.size() == 1 ? ",)" : ")");
      case Sequence::Kind::kKeys:
        return enclosed("dict_keys([", list.items, "])");
      case Sequence::Kind::kValues:
        return enclosed("dict_values([", list.items, "])");
      case Sequence::Kind::kItems:
        return enclosed("dict_items([", list.items, "])");
      case Sequence::Kind::kRange:
        return range(list.items);
      case Sequence::Kind::kGenerator:
        out_ += "<generator object>";
        break;
    }
    return out_.size() <= limit_;
  }

  bool range(const std::vector<Object>& values) {
    const std::int64_t first = values.empty() ? 0 : *values.front().integer();
    const std::int64_t last = values.empty() ? -1 : *values.back().integer();
    const std::int64_t step = values.size() < 2 ? 1 : *values[1].integer() - first;
    fmt::format_to(std::back_inserter(out_), "range({}, {}", first, last + (step > 0 ? 1 : -1));
    if (step != 1) fmt::format_to(std::back_inserter(out_), ", {}", step);
    out_.push_back(')');
    return out_.size() <= limit_;
  }

  bool dict(const Dict& members) {
    if (++level_ > 2 * kMaxValueDepth) return false;
    out_.push_back('{');
    for (std::size_t i = 0; i < members.items().size(); ++i) {
      if (i > 0) out_ += ", ";
      if (!repr(members.items()[i].first)) return false;
      out_ += ": ";
      if (!repr(members.items()[i].second)) return false;
    }
    out_.push_back('}');
    --level_;
    return out_.size() <= limit_;
  }

  std::string& out_;
  std::size_t limit_;
  int level_ = 0;
};

}  // namespace

void append_float(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view scientific(buffer, static_cast<std::size_t>(end - buffer));
  int exponent = 0;
  const std::size_t e = scientific.find('e');
  const std::size_t digits = scientific[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(buffer + digits, end, exponent);
  if (exponent < -4 || exponent >= 16) {
    out += scientific;
    return;
  }
  end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  const std::string_view fixed(buffer, static_cast<std::size_t>(end - buffer));
  out += fixed;
  if (fixed.find('.') == std::string_view::npos) out += ".0";
}

bool read_float(std::string_view digits, double& value) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return false;
  if (error == std::errc::result_out_of_range) value = std::strtod(std::string(digits).c_str(), nullptr);
  return true;
}

bool append_repr(std::string& out, const Object& value, std::size_t limit) { return TextWriter(out, limit).repr(value); }
bool append_text(std::string& out, const Object& value, std::size_t limit) { return TextWriter(out, limit).text(value); }

}  // namespace braid::text::jinja
