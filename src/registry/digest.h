// SHA-256 of files, as "sha256:" and 64 hexadecimal digits.
#pragma once

#include "braid/result.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace braid::registry {

// A digest that was checked: only such ones become names of files.
class Digest {
 public:
  // "sha256:…" or "sha256-…", small letters; kInvalidArgument for anything else.
  static Result<Digest> parse(std::string_view text);
  // Of 64 digits that a hash has given.
  static Digest of_digits(std::string digits) { return Digest(std::move(digits)); }

  const std::string& digits() const { return digits_; }
  std::string text() const { return "sha256:" + digits_; }
  std::string file_name() const { return "sha256-" + digits_; }

  bool operator==(const Digest&) const = default;
  auto operator<=>(const Digest&) const = default;

 private:
  explicit Digest(std::string digits) : digits_(std::move(digits)) {}
  std::string digits_;
};

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void add(std::string_view bytes);
  Digest finish();  // once

 private:
  evp_md_ctx_st* context_;
};

Digest digest_of(std::string_view bytes);
Result<Digest> digest_of_file(const std::string& path);

}  // namespace braid::registry
