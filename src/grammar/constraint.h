// A compiled constraint: an automaton, and what it says about the tokens of one vocabulary.
#pragma once

#include "braid/constraint.h"
#include "grammar/automaton.h"
#include "grammar/state_mask.h"
#include "grammar/vocabulary.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace braid::grammar {

class AutomatonConstraint final : public Constraint, public std::enable_shared_from_this<AutomatonConstraint> {
 public:
  AutomatonConstraint(std::shared_ptr<const Vocabulary> vocabulary, Automaton automaton, std::shared_ptr<MaskBudget> budget,
                      std::vector<std::string> left_out = {});

  std::unique_ptr<ConstraintState> start(std::span<const TokenId> accepted) const override;

  std::span<const std::string> left_out() const override { return left_out_; }

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const Automaton& automaton() const { return automaton_; }
  const StateMasks& masks() const { return masks_; }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  Automaton automaton_;
  StateMasks masks_;
  std::vector<std::string> left_out_;
};

}  // namespace braid::grammar
