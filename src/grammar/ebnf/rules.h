// The named rules of a grammar that is being read.
#pragma once

#include "grammar/grammar.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace braid::grammar {

class NamedRules {
 public:
  explicit NamedRules(Grammar& grammar) : grammar_(grammar) {}

  ExprId call(std::string_view name) { return grammar_.call(rule(name)); }
  // False when the name is defined already.
  bool define(std::string_view name, ExprId body) {
    grammar_.define(rule(name), body);
    return defined_.insert(std::string(name)).second;
  }
  bool is_defined(std::string_view name) const { return defined_.contains(std::string(name)); }

  // Some name that was called and never defined.
  std::optional<std::string> missing() const {
    for (const auto& [name, id] : ids_)
      if (!defined_.contains(name)) return name;
    return std::nullopt;
  }

 private:
  RuleId rule(std::string_view name) {
    const auto [it, fresh] = ids_.try_emplace(std::string(name), 0);
    if (fresh) it->second = grammar_.declare(it->first);
    return it->second;
  }

  Grammar& grammar_;
  std::map<std::string, RuleId> ids_;
  std::set<std::string> defined_;
};

}  // namespace braid::grammar
