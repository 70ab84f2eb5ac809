// Where in a written schema stands what was come to through schemas that were joined from its parts.
#pragma once

#include "braid/value.h"
#include "grammar/json/references.h"

#include <cstddef>
#include <string>
#include <utility>

namespace braid::grammar::json {

class Places {
 public:
  // `root` outlives this and stands at `path`.
  Places(const Value& root, std::string path) : root_(root), path_(std::move(path)), references_(root_, path_) {}

  // `place` may name an allOf, anyOf or oneOf that only joining made, or leave out such and references that are there. Of what does not
  // stand anywhere (keywords in the words of another draft among them), the nearest place that does.
  std::string written(const std::string& place);

 private:
  class Way;

  const Value& root_;
  const std::string path_;
  const References references_;
  std::size_t steps_left_ = 200'000;  // of all searches together: schemas can be made in which they would not end
};

}  // namespace braid::grammar::json
