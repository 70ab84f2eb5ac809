// The members of a body that wants weights to be loaded or changed.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace braid::net::weights {

// Of an object, or of a safetensors file's metadata, where a flag is a text. The first error counts; what is read after it is empty.
class Members {
 public:
  explicit Members(Value document) : document_(std::move(document)) {}

  std::optional<Error> error;

  std::string text(std::string_view key, bool required);
  bool flag(std::string_view key);
  bool has(std::string_view key) const { return find(key) != nullptr; }
  void refuse_others(std::initializer_list<std::string_view> known);

 private:
  const Value* find(std::string_view key) const;
  template <class T>
  T take(Result<T> read);

  Value document_;
};

}  // namespace braid::net::weights
