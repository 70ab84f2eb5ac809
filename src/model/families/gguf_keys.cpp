#include "model/families/gguf_keys.h"

#include <algorithm>
#include <fmt/format.h>
#include <type_traits>
#include <utility>

namespace braid::model {

std::string GgufKeys::full(std::string_view key) const {
  std::string full = fmt::format("{}.{}", architecture_, key);
  return file_.find(full) == nullptr && file_.find(key) != nullptr ? std::string(key) : full;
}

void GgufKeys::fail(ErrorCode code, std::string message) {
  if (!error) error = Error{code, fmt::format("{}: {}", file_.name(), message), {}};
}

std::int32_t GgufKeys::size(std::string_view key, std::optional<std::uint64_t> fallback, std::uint64_t max) {
  if (!has(key) && !fallback) fail(ErrorCode::kBadFile, fmt::format("the key {} is missing", full(key)));
  if (error) return 1;
  const std::uint64_t value = uniform(key, fallback.value_or(0));
  if (value < 1 || value > max) fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a number from 1 to {}", full(key), value, max));
  return error ? 1 : static_cast<std::int32_t>(value);
}

std::vector<std::int32_t> GgufKeys::sizes(std::string_view key, std::size_t layers, std::optional<std::uint64_t> fallback,
                                          std::uint64_t max) {
  const files::GgufValue* value = file_.find(full(key));
  const auto* array = value != nullptr ? std::get_if<files::GgufArray>(value) : nullptr;
  if (array == nullptr) return std::vector<std::int32_t>(layers, size(key, fallback, max));
  std::vector<std::int32_t> sizes;
  bool sound = true;
  std::visit(
      [&](const auto& items) {
    using Item = typename std::decay_t<decltype(items)>::value_type;
    if constexpr (std::is_integral_v<Item> && !std::is_same_v<Item, bool>)
      for (const Item item : items) {
        sound &= static_cast<std::uint64_t>(item) <= max;
        sizes.push_back(static_cast<std::int32_t>(item));
      }
      },
      array->items);
  if (!sound || sizes.size() < layers)
    fail(ErrorCode::kBadFile, fmt::format("{} is not an array of {} numbers from 0 to {}", full(key), layers, max));
  sizes.resize(layers);
  return sizes;
}

std::int32_t GgufKeys::count(std::string_view key, std::uint64_t max, std::uint64_t fallback) {
  if (error) return 0;
  auto found = file_.unsigned_or(full(key), fallback);
  if (!found) return take(found.error()), 0;
  if (*found > max) fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a number up to {}", full(key), *found, max));
  return error ? 0 : static_cast<std::int32_t>(*found);
}

double GgufKeys::number(std::string_view key, std::optional<double> fallback, double low, double high) {
  if (!has(key) && !fallback) fail(ErrorCode::kBadFile, fmt::format("the key {} is missing", full(key)));
  if (error) return low;
  auto found = file_.number_or(full(key), fallback.value_or(0.0));
  if (!found) return take(found.error()), low;
  if (!(*found >= low && *found <= high))
    fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected a number from {} to {}", full(key), *found, low, high));
  return *found;
}

double GgufKeys::number_unless(double unset, std::string_view key, double fallback, double low, double high) {
  const auto found = file_.number_or(full(key), fallback);
  return found && *found == unset ? fallback : number(key, fallback, low, high);
}

bool GgufKeys::flag(std::string_view key, bool fallback) {
  auto found = file_.bool_or(full(key), fallback);
  if (!found) return take(found.error()), fallback;
  return *found;
}

std::string GgufKeys::text(std::string_view key, std::string fallback) {
  auto found = file_.string_or(full(key), std::move(fallback));
  if (!found) return take(found.error()), std::string();
  return *found;
}

std::vector<bool> GgufKeys::flags(std::string_view key, std::size_t count) {
  const files::GgufValue* value = file_.find(full(key));
  const auto* array = value != nullptr ? std::get_if<files::GgufArray>(value) : nullptr;
  if (array == nullptr) return {};
  std::vector<bool> flags;
  std::visit(
      [&](const auto& items) {
    using Item = typename std::decay_t<decltype(items)>::value_type;
    if constexpr (std::is_integral_v<Item>)
      for (const auto item : items) flags.push_back(item != 0);
      },
      array->items);
  if (flags.size() != count) fail(ErrorCode::kBadFile, fmt::format("{} is not an array of {} truth values", full(key), count));
  flags.resize(count);
  return flags;
}

std::vector<double> GgufKeys::numbers(std::string_view key, std::size_t count, std::optional<double> fallback) {
  const files::GgufValue* value = file_.find(full(key));
  const auto* array = value != nullptr ? std::get_if<files::GgufArray>(value) : nullptr;
  if (array == nullptr) return std::vector<double>(count, number(key, fallback, -1e30, 1e30));
  const auto* items = std::get_if<std::vector<double>>(&array->items);
  if (items != nullptr && items->size() == count) return *items;
  fail(ErrorCode::kBadFile, fmt::format("{} is not an array of {} numbers", full(key), count));
  return std::vector<double>(count);
}

std::uint64_t GgufKeys::uniform(std::string_view key, std::uint64_t fallback) {
  const files::GgufValue* value = file_.find(full(key));
  if (const auto* array = value != nullptr ? std::get_if<files::GgufArray>(value) : nullptr)
    return std::visit([&](const auto& items) { return uniform_item(key, items); }, array->items);
  auto found = file_.unsigned_or(full(key), fallback);
  if (!found) return take(found.error()), 1;
  return *found;
}

template <class Items>
std::uint64_t GgufKeys::uniform_item(std::string_view key, const Items& items) {
  using Item = typename Items::value_type;
  if constexpr (std::is_integral_v<Item> && !std::is_same_v<Item, bool>) {
    const auto first = std::ranges::find_if(items, [](Item item) { return item != 0; });
    for (const Item item : items)
      if (item != 0 && item != *first)
        fail(ErrorCode::kUnsupported,
             fmt::format("{} differs between layers ({} and {}), which this build cannot compute", full(key), *first, item));
    if (first != items.end() && *first > 0) return static_cast<std::uint64_t>(*first);
  }
  fail(ErrorCode::kBadFile, fmt::format("{} is an array without positive integers, expected a number", full(key)));
  return 1;
}

}  // namespace braid::model
