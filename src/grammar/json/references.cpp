#include "grammar/json/references.h"

#include <charconv>
#include <cstddef>
#include <fmt/format.h>
#include <string_view>

namespace braid::grammar::json {
namespace {

// One step of a JSON pointer, with ~0, ~1 and %XX decoded.
std::string decode_step(std::string_view step) {
  std::string out;
  for (std::size_t i = 0; i < step.size(); ++i) {
    unsigned code = 0;
    if (step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1')) {
      out += step[++i] == '0' ? '~' : '/';
    } else if (step[i] == '%' && i + 2 < step.size() &&
               std::from_chars(step.data() + i + 1, step.data() + i + 3, code, 16).ptr == step.data() + i + 3) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += step[i];
    }
  }
  return out;
}

// Null where there is no such member or element. `place` goes along.
const Value* step_into(const Value& value, const std::string& step, std::string& place) {
  const auto* list = value.get_if<ValueList>();
  if (list == nullptr) {
    place.append(".").append(step);
    return value.find(step);
  }
  std::size_t index = 0;
  const auto end = std::from_chars(step.data(), step.data() + step.size(), index);
  if (end.ec != std::errc() || end.ptr != step.data() + step.size() || index >= list->size()) return nullptr;
  place += fmt::format("[{}]", index);
  return &(*list)[index];
}

}  // namespace

std::optional<References::Target> References::find(const std::string& reference) const {
  if (reference == "#") return Target{&root_, path_};
  if (reference.starts_with("#/")) return find_pointer(reference);
  if (!named_) {
    named_.emplace();
    collect_names(root_, path_);
  }
  const auto entry = named_->find(reference);
  return entry != named_->end() ? std::optional(entry->second) : std::nullopt;
}

std::optional<References::Target> References::find_pointer(const std::string& pointer) const {
  Target target{&root_, path_};
  for (std::size_t at = 1; at < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', at + 1), pointer.size());
    target.schema = step_into(*target.schema, decode_step(std::string_view(pointer).substr(at + 1, end - at - 1)), target.place);
    if (target.schema == nullptr) return std::nullopt;
    at = end;
  }
  return target;
}

void References::collect_names(const Value& value, const std::string& place) const {
  if (const auto* list = value.get_if<ValueList>())
    for (std::size_t i = 0; i < list->size(); ++i) collect_names((*list)[i], fmt::format("{}[{}]", place, i));
  const auto* dict = value.get_if<ValueDict>();
  if (dict == nullptr) return;
  for (const auto& [name, item] : *dict) {
    const auto* text = item.get_if<std::string>();
    if (text != nullptr && name == "$id") named_->try_emplace(*text, Target{&value, place});
    if (text != nullptr && name == "$anchor") named_->try_emplace("#" + *text, Target{&value, place});
    collect_names(item, place + "." + name);
  }
}

}  // namespace braid::grammar::json
