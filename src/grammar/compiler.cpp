#include "grammar/compiler.h"

#include "grammar/automaton.h"
#include "grammar/build.h"
#include "grammar/productive.h"
#include "grammar/spec.h"
#include "grammar/text_search.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace braid::grammar {
namespace {

struct Compiled {
  Automaton automaton;
  std::vector<std::string> left_out;
};

Error refused(const ConstraintSpec& spec, std::string_view why) {
  return invalid_argument(fmt::format("{}: {}", spec.path, why), spec.path);
}

// Without those schemas and members' texts that are objected to and may be left out. Members and elements that must be there and for which
// there is no text join `barren`, one after the other, from the innermost on.
Result<Compiled> compile_with(const Objection& objects_to, const ConstraintSpec& spec, const Vocabulary& vocabulary,
                              std::set<std::string>& barren) {
  constexpr std::size_t kMostBarren = 64;
  for (;;) {
    Grammar grammar;
    auto translated = translate(spec, vocabulary, grammar, objects_to, barren);
    if (!translated) return translated.error();
    const std::vector<bool> productive = find_productive(grammar);
    if (std::ranges::all_of(translated->parts, [&](ExprId part) { return bool{productive[part]}; })) {
      auto automaton = build(grammar, translated->root);
      if (!automaton) return refused(spec, automaton.error().message);
      return Compiled{std::move(*automaton), std::move(translated->left_out)};
    }
    const auto unmet = std::ranges::find_if(translated->demands, [&](const json::Demand& demand) { return !productive[demand.expr]; });
    if (unmet == translated->demands.end() || barren.size() == kMostBarren)
      return refused(spec, "no finite text satisfies a part of the constraint");
    barren.insert(unmet->place);
  }
}

std::optional<Error> no_objection(const ConstraintSpec&) { return std::nullopt; }

bool is_strict(const ConstraintSpec& part) {
  const auto* schema = std::get_if<ConstraintSpec::JsonSchema>(&part.kind);
  return schema != nullptr && schema->strict;
}

// Objects to parts that cannot be compiled alone, and of those that may be left out to the ones that have no room behind others.
class PartsAlone {
 public:
  PartsAlone(const Vocabulary& vocabulary, std::set<std::string>& barren) : vocabulary_(vocabulary), barren_(barren) {}

  // How many states those that may be left out may have together from now on.
  void make_room(std::size_t states) { room_ = states; }

  // Whether one that may not be left out cannot be compiled alone.
  bool hopeless() const { return hopeless_; }

  std::optional<Error> judge(const ConstraintSpec& part) {
    const auto [entry, fresh] = verdicts_.try_emplace(part.path);
    Verdict& verdict = entry->second;
    if (fresh) {
      auto compiled = compile_with(no_objection, part, vocabulary_, barren_);
      if (compiled) verdict.states = compiled->automaton.states.size();
      if (!compiled) verdict.error = compiled.error();
    }
    if (verdict.error) hopeless_ = hopeless_ || is_strict(part);
    if (verdict.error || is_strict(part)) return verdict.error;
    if (verdict.states > room_) return refused(part, "the schemas are too large together");
    room_ -= verdict.states;
    return std::nullopt;
  }

 private:
  struct Verdict {
    std::optional<Error> error = {};
    std::size_t states = 0;
  };

  const Vocabulary& vocabulary_;
  std::set<std::string>& barren_;
  std::map<std::string, Verdict> verdicts_;  // by path: a part may stand in several places
  std::size_t room_ = 0;
  bool hopeless_ = false;
};

// Which part is at fault only shows where the whole fails.
Result<Compiled> compile_what_can_be(const ConstraintSpec& spec, const Vocabulary& vocabulary) {
  constexpr std::size_t kMost = BuildLimits{}.states;  // what holds the parts together takes some of them
  std::set<std::string> barren;
  auto compiled = compile_with(no_objection, spec, vocabulary, barren);
  if (compiled || !has_parts(spec)) return compiled;
  PartsAlone parts(vocabulary, barren);
  const Objection judge = [&parts](const ConstraintSpec& part) { return parts.judge(part); };
  for (const std::size_t room : {kMost, kMost / 4, kMost / 16, std::size_t{0}}) {
    parts.make_room(room);
    compiled = compile_with(judge, spec, vocabulary, barren);
    if (compiled || parts.hopeless()) break;
  }
  return compiled;
}

}  // namespace

Compiler::Compiler(std::function<Vocabulary()> read_vocabulary, CompilerLimits limits)
    : read_vocabulary_(std::move(read_vocabulary)), limits_(limits), budget_(std::make_shared<MaskBudget>(limits.mask_bytes)) {}

const std::shared_ptr<const Vocabulary>& Compiler::vocabulary() const {
  std::call_once(vocabulary_read_, [this] { vocabulary_ = std::make_shared<const Vocabulary>(read_vocabulary_()); });
  return vocabulary_;
}

Result<std::shared_ptr<const Constraint>> Compiler::compile(const ConstraintSpec& spec) const {
  std::string key = cache_key(spec);
  if (auto constraint = find(key)) return constraint;
  auto compiled = compile_what_can_be(spec, *vocabulary());
  if (!compiled) return compiled.error();
  std::shared_ptr<const Constraint> constraint =
      std::make_shared<AutomatonConstraint>(vocabulary(), std::move(compiled->automaton), budget_, std::move(compiled->left_out));
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
