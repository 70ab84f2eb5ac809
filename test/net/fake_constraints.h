// A compiler of constraints that allow everything.
#pragma once

#include "braid/constraint.h"

#include <algorithm>
#include <memory>

namespace braid::test {

class FakeConstraint : public Constraint {
 public:
  class State final : public ConstraintState {
   public:
    void fill_mask(std::span<std::uint32_t> allowed) override { std::fill(allowed.begin(), allowed.end(), ~std::uint32_t{0}); }
    void accept(TokenId) override {}
    std::unique_ptr<ConstraintState> copy() const override { return std::make_unique<State>(*this); }
  };

  explicit FakeConstraint(ConstraintSpec compiled) : spec(std::move(compiled)) {}
  std::unique_ptr<ConstraintState> start(std::span<const TokenId>) const override { return std::make_unique<State>(); }

  const ConstraintSpec spec;
};

// Finds the pattern as it stands.
class FakeSearch final : public TextSearch {
 public:
  explicit FakeSearch(std::string text) : text_(std::move(text)) {}

  std::optional<std::size_t> feed(State& state, std::string_view piece) const override {  // of patterns without repetition
    for (std::size_t i = 0; i < piece.size(); ++i) {
      state = piece[i] == text_[state] ? state + 1 : piece[i] == text_.front() ? 1 : 0;
      if (state == text_.size()) return i + 1;
    }
    return std::nullopt;
  }

 private:
  std::string text_;
};

// The schema `false` cannot be honoured.
class FakeCompiler final : public ConstraintCompiler {
 public:
  Result<std::shared_ptr<const Constraint>> compile(const ConstraintSpec& spec) const override {
    const auto* json = std::get_if<ConstraintSpec::JsonSchema>(&spec.kind);
    if (json != nullptr && json->schema == Value(false)) return invalid_argument("nothing satisfies this schema", spec.path);
    return std::shared_ptr<const Constraint>(std::make_shared<FakeConstraint>(spec));
  }

  Result<std::shared_ptr<const TextSearch>> search(const std::string& pattern, const std::string& path) const override {
    if (pattern == "(") return invalid_argument("'" + path + "' is not understood", path);
    return std::shared_ptr<const TextSearch>(std::make_shared<FakeSearch>(pattern));
  }
};

}  // namespace braid::test
