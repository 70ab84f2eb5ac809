#include "grammar/compiler.h"

#include "grammar/build.h"
#include "grammar/spec.h"
#include "grammar/text_search.h"

#include <fmt/format.h>
#include <utility>

namespace braid::grammar {

Compiler::Compiler(std::function<Vocabulary()> read_vocabulary, CompilerLimits limits)
    : read_vocabulary_(std::move(read_vocabulary)), limits_(limits), budget_(std::make_shared<MaskBudget>(limits.mask_bytes)) {}

const std::shared_ptr<const Vocabulary>& Compiler::vocabulary() const {
  std::call_once(vocabulary_read_, [this] { vocabulary_ = std::make_shared<const Vocabulary>(read_vocabulary_()); });
  return vocabulary_;
}

Result<std::shared_ptr<const Constraint>> Compiler::compile(const ConstraintSpec& spec) const {
  std::string key = cache_key(spec);
  if (auto constraint = find(key)) return constraint;
  Grammar grammar;
  std::vector<std::string> left_out;
  const auto root = translate(spec, *vocabulary(), grammar, left_out);
  if (!root) return root.error();
  auto automaton = build(grammar, *root);
  if (!automaton) return invalid_argument(fmt::format("{}: {}", spec.path, automaton.error().message), spec.path);
  std::shared_ptr<const Constraint> constraint =
      std::make_shared<AutomatonConstraint>(vocabulary(), std::move(*automaton), budget_, std::move(left_out));
  keep(std::move(key), constraint);
  return constraint;
}

Result<std::shared_ptr<const TextSearch>> Compiler::search(const std::string& pattern, const std::string& path) const {
  auto found = make_text_search(pattern);
  if (!found) return invalid_argument(fmt::format("'{}': {}", path, found.error().message), path);
  return found;
}

std::shared_ptr<const Constraint> Compiler::find(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto entry = by_key_.find(key);
  if (entry == by_key_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, entry->second);
  return entry->second->constraint;
}

void Compiler::keep(std::string key, std::shared_ptr<const Constraint> constraint) const {
  std::list<Kept> dropped;  // destroyed after the lock is given back
  const std::lock_guard lock(mutex_);
  if (key.size() > limits_.cached_key_bytes || by_key_.contains(key)) return;
  key_bytes_ += key.size();
  kept_.push_front({std::move(key), std::move(constraint)});
  by_key_.emplace(kept_.front().key, kept_.begin());
  while (kept_.size() > limits_.cached_constraints || key_bytes_ > limits_.cached_key_bytes) {
    key_bytes_ -= kept_.back().key.size();
    by_key_.erase(kept_.back().key);
    dropped.splice(dropped.begin(), kept_, std::prev(kept_.end()));
  }
}

}  // namespace braid::grammar
