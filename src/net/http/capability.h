// A token that requests through a Unix socket have to show.
#pragma once

#include "braid/result.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace braid::net::http {

// The secret that gives access, for as long as its file is as it is. Immutable.
class Capability {
 public:
  explicit Capability(std::string token) : token_(std::move(token)) {}

  // Takes the same time wherever they differ.
  bool matches(std::string_view token) const;

 private:
  std::string token_;
};

// From the first line of `file`; where there is no such file, a random token is written into a new one that only its owner can read.
Result<std::shared_ptr<const Capability>> load_capability(const std::string& file);

}  // namespace braid::net::http
