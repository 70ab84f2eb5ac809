// A JSON-shaped value: what travels from a request body into a chat template.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace braid {

class Value;
using ValueList = std::vector<Value>;
using ValueDict = std::vector<std::pair<std::string, Value>>;  // insertion order is kept: templates print it

// A whole number that an int64 cannot hold, as it was written: digits behind an optional minus.
struct LongInteger {
  std::string text;
  bool operator==(const LongInteger&) const = default;
};

class Value {
 public:
  using Storage = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, ValueList, ValueDict, LongInteger>;

  Value() = default;
  Value(std::nullptr_t) {}
  Value(bool value) : storage_(value) {}
  Value(std::int64_t value) : storage_(value) {}
  Value(int value) : storage_(std::int64_t{value}) {}
  Value(double value) : storage_(value) {}
  Value(LongInteger value) : storage_(std::move(value)) {}
  Value(const char* value) : storage_(std::string(value)) {}
  Value(std::string value) : storage_(std::move(value)) {}
  Value(ValueList value) : storage_(std::move(value)) {}
  Value(ValueDict value) : storage_(std::move(value)) {}

  const Storage& storage() const { return storage_; }
  Storage& storage() { return storage_; }

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(storage_); }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&storage_);
  }
  template <class T>
  T* get_if() {
    return std::get_if<T>(&storage_);
  }

  // Of any number, the nearest double.
  std::optional<double> number() const {
    if (const auto* whole = get_if<std::int64_t>()) return static_cast<double>(*whole);
    if (const auto* real = get_if<double>()) return *real;
    const auto* digits = get_if<LongInteger>();
    return digits != nullptr ? std::optional(std::strtod(digits->text.c_str(), nullptr)) : std::nullopt;
  }

  // The member `key` of a dict; null when this is no dict or has no such member.
  const Value* find(std::string_view key) const {
    const auto* dict = get_if<ValueDict>();
    if (dict == nullptr) return nullptr;
    for (const auto& [name, value] : *dict)
      if (name == key) return &value;
    return nullptr;
  }

  bool operator==(const Value&) const = default;

 private:
  Storage storage_;
};

// The member `key`, to be changed; null when there is none.
inline Value* find_member(ValueDict& dict, std::string_view key) {
  for (auto& [name, value] : dict)
    if (name == key) return &value;
  return nullptr;
}

}  // namespace braid
