// What the references of a schema lead to.
#pragma once

#include "braid/value.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace braid::grammar::json {

class References {
 public:
  struct Target {
    const Value* schema;
    std::string place;  // as errors name it
  };

  // `root` is what "#" leads to and outlives this; `path` is how errors name it.
  References(const Value& root, std::string path) : root_(root), path_(std::move(path)) {}

  // Of a pointer into the schema, an $id or an $anchor; nullopt: it leads nowhere.
  std::optional<Target> find(const std::string& reference) const;

 private:
  std::optional<Target> find_pointer(const std::string& pointer) const;
  void collect_names(const Value& value, const std::string& place) const;

  const Value& root_;
  const std::string path_;
  mutable std::optional<std::map<std::string, Target>> named_;  // by $id, or # and $anchor; once one of them is asked for
};

}  // namespace braid::grammar::json
