#include "text/jinja/from_value.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace braid::text::jinja {
namespace {

Object convert(const Value& value, int level) {
  if (level >= kMaxValueDepth) return {};
  if (const auto* flag = value.get_if<bool>()) return *flag;
  if (const auto* number = value.get_if<std::int64_t>()) return *number;
  if (const auto number = value.number()) return *number;
  if (const auto* text = value.get_if<std::string>()) return Object::from_text(*text);
  if (const auto* list = value.get_if<ValueList>()) {
    auto sequence = std::make_shared<Sequence>();
    for (const auto& item : *list) {
      Object converted = convert(item, level + 1);
      if (converted.is_missing()) return {};
      sequence->depth = std::max(sequence->depth, 1 + depth_of(converted));
      sequence->items.push_back(std::move(converted));
    }
    return sequence;
  }
  if (const auto* members = value.get_if<ValueDict>()) {
    auto dict = std::make_shared<Dict>();
    for (const auto& [name, member] : *members) {
      Object converted = convert(member, level + 1);
      if (converted.is_missing()) return {};
      dict->set(Object::from_text(name), std::move(converted));
    }
    return dict;
  }
  return Object::None{};
}

}  // namespace

Object to_object(const Value& value) { return convert(value, 0); }

}  // namespace braid::text::jinja
