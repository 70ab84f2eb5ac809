// A value within a template that is executed.
#pragma once

#include "braid/value.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace braid::text::go {

// Refers to a part of what the template was given, or to what it has made itself: conversations are never copied. A list may be a slice of one.
class Term {
 public:
  Term() : value_(nil()) {}
  explicit Term(Value made) : value_(std::make_shared<const Value>(std::move(made))) {}

  // A part of the value of `whole`.
  static Term part(const Term& whole, const Value& value) { return Term(std::shared_ptr<const Value>(whole.value_, &value)); }
  // Of a list what stands at [begin, end), which it has.
  Term slice(std::size_t begin, std::size_t end) const {
    Term term = *this;
    term.begin_ += begin;
    term.count_ = end - begin;
    return term;
  }

  bool is_list() const { return value_->get_if<ValueList>() != nullptr; }
  std::span<const Value> items() const {
    const std::span<const Value> all = *value_->get_if<ValueList>();
    return all.subspan(begin_, std::min(count_, all.size() - begin_));
  }
  // Not of a list.
  const Value& value() const { return *value_; }
  const std::string* text() const { return value_->get_if<std::string>(); }
  // The size of a text, a list or an object; 0 of nil; none of others.
  std::optional<std::size_t> size() const {
    if (is_list()) return items().size();
    if (const auto* words = text()) return words->size();
    if (const auto* dict = value_->get_if<ValueDict>()) return dict->size();
    return value_->is_null() ? std::optional<std::size_t>(0) : std::nullopt;
  }
  // Of an object, that are gone through when one is looked for; 0 of others.
  std::size_t members() const {
    const auto* dict = value_->get_if<ValueDict>();
    return dict != nullptr ? dict->size() : 0;
  }

 private:
  explicit Term(std::shared_ptr<const Value> value) : value_(std::move(value)) {}
  static const std::shared_ptr<const Value>& nil() {
    static const auto kNil = std::make_shared<const Value>();
    return kNil;
  }

  std::shared_ptr<const Value> value_;
  std::size_t begin_ = 0;  // of a slice
  std::size_t count_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace braid::text::go
