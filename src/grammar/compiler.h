// Compiles the constraints of requests for one model's vocabulary, and keeps those used last.
#pragma once

#include "braid/constraint.h"
#include "grammar/constraint.h"
#include "grammar/vocabulary.h"

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace braid::grammar {

struct CompilerLimits {
  std::size_t cached_constraints = 128;
  std::size_t cached_key_bytes = 8 << 20;  // of their specs
  std::size_t mask_bytes = 256 << 20;      // of all constraints that are alive; beyond it masks are made anew for every token
};

// Any thread. The lock guards the list of kept constraints only: nothing is compiled under it, and no step of a model takes it.
class Compiler final : public ConstraintCompiler {
 public:
  // `read_vocabulary` is called once, by the first compile(): a server that is asked for no constraint never pays for it.
  explicit Compiler(std::function<Vocabulary()> read_vocabulary, CompilerLimits limits = {});

  Result<std::shared_ptr<const Constraint>> compile(const ConstraintSpec& spec) const override;
  Result<std::shared_ptr<const TextSearch>> search(const std::string& pattern, const std::string& path) const override;

 private:
  struct Kept {
    std::string key;
    std::shared_ptr<const Constraint> constraint;
  };
  std::shared_ptr<const Constraint> find(std::string_view key) const;
  void keep(std::string key, std::shared_ptr<const Constraint> constraint) const;

  const std::shared_ptr<const Vocabulary>& vocabulary() const;

  std::function<Vocabulary()> read_vocabulary_;
  mutable std::once_flag vocabulary_read_;
  mutable std::shared_ptr<const Vocabulary> vocabulary_;
  CompilerLimits limits_;
  std::shared_ptr<MaskBudget> budget_;

  mutable std::mutex mutex_;
  mutable std::list<Kept> kept_;  // used last first
  mutable std::unordered_map<std::string_view, std::list<Kept>::iterator> by_key_;
  mutable std::size_t key_bytes_ = 0;
};

}  // namespace braid::grammar
