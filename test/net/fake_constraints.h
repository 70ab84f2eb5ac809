// A compiler of constraints that allow everything.
#pragma once

#include "braid/constraint.h"

#include <algorithm>
#include <memory>

namespace braid::test {

class FakeConstraint final : public Constraint {
 public:
  class State final : public ConstraintState {
   public:
    void fill_mask(std::span<std::uint32_t> allowed) override { std::fill(allowed.begin(), allowed.end(), ~std::uint32_t{0}); }
    void accept(TokenId) override {}
  };

  explicit FakeConstraint(ConstraintSpec compiled) : spec(std::move(compiled)) {}
  std::unique_ptr<ConstraintState> start(std::span<const TokenId>) const override { return std::make_unique<State>(); }

  const ConstraintSpec spec;
};

// The schema `false` cannot be honoured.
class FakeCompiler final : public ConstraintCompiler {
 public:
  Result<std::shared_ptr<const Constraint>> compile(const ConstraintSpec& spec) const override {
    const auto* json = std::get_if<ConstraintSpec::JsonSchema>(&spec.kind);
    if (json != nullptr && json->schema == Value(false)) return invalid_argument("nothing satisfies this schema", spec.path);
    return std::shared_ptr<const Constraint>(std::make_shared<FakeConstraint>(spec));
  }
};

}  // namespace braid::test
