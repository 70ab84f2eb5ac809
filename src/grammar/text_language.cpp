#include "grammar/text_language.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::grammar {
namespace {

constexpr std::size_t kMaxStates = 12'000;
constexpr std::size_t kMaxTerms = 400'000;
constexpr std::size_t kMaxWork = 4'000'000;  // states times classes of characters

}  // namespace

TextLanguages::TextLanguages() {
  const Id none = add({Kind::kEither, {}, 0, 0, 0, false});
  add({Kind::kSequence, {}, 0, 0, 0, true});
  add({Kind::kComplement, {none}, 0, 0, 0, true});
}

TextLanguages::Id TextLanguages::add(Term term) {
  std::vector<std::uint32_t> key = {static_cast<std::uint32_t>(term.kind), term.min, term.max, term.set};
  key.insert(key.end(), term.parts.begin(), term.parts.end());
  const auto [it, fresh] = known_.try_emplace(std::move(key), static_cast<Id>(terms_.size()));
  if (fresh) terms_.push_back(std::move(term));
  return it->second;
}

TextLanguages::Id TextLanguages::chars(CodePointSet set) {
  if (set.empty()) return nothing();
  const auto found = std::find(sets_.begin(), sets_.end(), set);
  const auto index = static_cast<std::uint32_t>(found - sets_.begin());
  if (found == sets_.end()) sets_.push_back(std::move(set));
  return add({Kind::kChars, {}, 0, 0, index, false});
}

TextLanguages::Id TextLanguages::text(std::string_view utf8) {
  std::vector<Id> characters;
  std::uint32_t point = 0;
  for (std::size_t at = 0; at < utf8.size() && next_code_point(utf8, at, point);)
    characters.push_back(chars(CodePointSet({{point, point}})));
  Id out = empty();
  for (auto c = characters.rbegin(); c != characters.rend(); ++c) out = sequence(*c, out);
  return out;
}

TextLanguages::Id TextLanguages::sequence(Id first, Id then) {
  if (first == nothing() || then == nothing()) return nothing();
  if (first == empty()) return then;
  if (then == empty()) return first;
  if (first == anything() && then == anything()) return first;
  if (terms_[first].kind == Kind::kSequence) {  // leans to the right
    const std::vector<Id> parts = terms_[first].parts;
    return sequence(parts[0], sequence(parts[1], then));
  }
  const bool nullable = terms_[first].nullable && terms_[then].nullable;
  return add({Kind::kSequence, {first, then}, 0, 0, 0, nullable});
}

TextLanguages::Id TextLanguages::either(std::vector<Id> options) {
  std::vector<Id> flat;
  CodePointSet set;
  for (const Id option : options) {
    if (terms_[option].kind == Kind::kEither) {
      flat.insert(flat.end(), terms_[option].parts.begin(), terms_[option].parts.end());
    } else {
      flat.push_back(option);
    }
  }
  std::erase_if(flat, [&](Id id) {
    if (terms_[id].kind != Kind::kChars) return false;
    set = set.united(sets_[terms_[id].set]);
    return true;
  });
  if (!set.empty()) flat.push_back(chars(std::move(set)));
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (std::find(flat.begin(), flat.end(), anything()) != flat.end()) return anything();
  if (flat.size() == 1) return flat.front();
  const bool nullable = std::any_of(flat.begin(), flat.end(), [&](Id id) { return terms_[id].nullable; });
  return add({Kind::kEither, std::move(flat), 0, 0, 0, nullable});
}

TextLanguages::Id TextLanguages::both(std::vector<Id> parts) {
  std::vector<Id> flat;
  for (const Id part : parts) {
    if (terms_[part].kind == Kind::kBoth) {
      flat.insert(flat.end(), terms_[part].parts.begin(), terms_[part].parts.end());
    } else if (part != anything()) {
      flat.push_back(part);
    }
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (flat.empty()) return anything();
  if (std::find(flat.begin(), flat.end(), nothing()) != flat.end()) return nothing();
  const bool nullable = std::all_of(flat.begin(), flat.end(), [&](Id id) { return terms_[id].nullable; });
  if (std::find(flat.begin(), flat.end(), empty()) != flat.end()) return nullable ? empty() : nothing();
  if (flat.size() == 1) return flat.front();
  return add({Kind::kBoth, std::move(flat), 0, 0, 0, nullable});
}

TextLanguages::Id TextLanguages::complement(Id term) {
  if (terms_[term].kind == Kind::kComplement) return terms_[term].parts.front();
  return add({Kind::kComplement, {term}, 0, 0, 0, !terms_[term].nullable});
}

TextLanguages::Id TextLanguages::repeat(Id term, std::uint32_t min, std::uint32_t max) {
  if (max == 0 || term == empty() || (term == nothing() && min == 0)) return empty();
  if (term == nothing()) return nothing();
  if (min == 1 && max == 1) return term;
  if (min == 0 && max == kUnbounded && term == chars(CodePointSet::all())) return anything();
  const bool nullable = min == 0 || terms_[term].nullable;
  return add({Kind::kRepeat, {term}, min, max, 0, nullable});
}

TextLanguages::Id TextLanguages::derivative(Id id, std::uint32_t point) {
  if (const auto known = derivatives_.find({id, point}); known != derivatives_.end()) return known->second;
  const Term term = terms_[id];
  Id out = nothing();
  std::vector<Id> parts;
  switch (term.kind) {
    case Kind::kChars:
      out = sets_[term.set].contains(point) ? empty() : nothing();
      break;
    case Kind::kSequence:
      if (term.parts.empty()) break;
      out = sequence(derivative(term.parts[0], point), term.parts[1]);
      if (terms_[term.parts[0]].nullable) out = either({out, derivative(term.parts[1], point)});
      break;
    case Kind::kEither:
    case Kind::kBoth:
      for (const Id part : term.parts) parts.push_back(derivative(part, point));
      out = term.kind == Kind::kEither ? either(std::move(parts)) : both(std::move(parts));
      break;
    case Kind::kComplement:
      out = complement(derivative(term.parts.front(), point));
      break;
    case Kind::kRepeat: {
      // Where an item may be empty, so may those that are still owed.
      const std::uint32_t min = terms_[term.parts.front()].nullable ? 0 : term.min - std::min(term.min, 1U);
      const std::uint32_t max = term.max == kUnbounded ? kUnbounded : term.max - 1;
      out = sequence(derivative(term.parts.front(), point), repeat(term.parts.front(), min, max));
      break;
    }
  }
  derivatives_.emplace(std::pair(id, point), out);
  return out;
}

bool TextLanguages::matches(Id term, std::string_view utf8) {
  std::uint32_t point = 0;
  for (std::size_t at = 0; at < utf8.size();) {
    if (!next_code_point(utf8, at, point)) return false;
    term = derivative(term, point);
  }
  return terms_[term].nullable;
}

std::vector<CodePointSet> TextLanguages::classes(Id root) const {
  std::vector<bool> seen(terms_.size(), false);
  std::vector<Id> pending = {root};
  std::vector<CodePointSet> out = {CodePointSet::all()};
  std::vector<bool> used(sets_.size(), false);
  while (!pending.empty()) {
    const Id id = pending.back();
    pending.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    const Term& term = terms_[id];
    pending.insert(pending.end(), term.parts.begin(), term.parts.end());
    if (term.kind != Kind::kChars || used[term.set]) continue;
    used[term.set] = true;
    std::vector<CodePointSet> finer;
    for (const CodePointSet& set : out)
      for (const CodePointSet& part : {set.without(sets_[term.set]), set.without(set.without(sets_[term.set]))})
        if (!part.empty()) finer.push_back(part);
    out = std::move(finer);
  }
  return out;
}

Result<CharacterAutomaton> TextLanguages::automaton(Id root) {
  CharacterAutomaton out;
  out.classes = classes(root);
  std::map<Id, std::uint32_t> number = {{root, 0}};
  std::vector<Id> states = {root};
  for (std::size_t i = 0; i < states.size(); ++i) {
    out.accepting.push_back(terms_[states[i]].nullable);
    for (const CodePointSet& set : out.classes) {
      const Id next = derivative(states[i], set.ranges().front().first);
      const auto [it, fresh] = number.try_emplace(next, static_cast<std::uint32_t>(states.size()));
      if (fresh) states.push_back(next);
      out.targets.push_back(it->second);
    }
    if (states.size() > kMaxStates || terms_.size() > kMaxTerms || states.size() * out.classes.size() > kMaxWork)
      return invalid_argument(fmt::format("the text needs more than {} states", kMaxStates));
  }
  return out;
}

Result<ExprId> TextLanguages::expression(Id root, Grammar& grammar, const std::function<ExprId(const CodePointSet&)>& character) {
  const Result<CharacterAutomaton> automaton = this->automaton(root);
  if (!automaton) return automaton.error();
  const std::size_t classes = automaton->classes.size();
  std::vector<bool> is_dead;  // nothing matches after it
  for (std::uint32_t state = 0; state < automaton->accepting.size(); ++state) {
    const auto targets = automaton->targets.begin() + static_cast<std::ptrdiff_t>(state * classes);
    is_dead.push_back(!automaton->accepting[state] && std::all_of(targets, targets + static_cast<std::ptrdiff_t>(classes),
                                                                  [&](std::uint32_t target) { return target == state; }));
  }
  // A language without a text may have states all the same, and the automaton's builder drops ways that lead nowhere.
  std::vector<std::uint32_t> accepting;
  std::vector<GraphEdge> graph;
  std::vector<std::pair<CodePointSet, ExprId>> labels;
  for (std::uint32_t from = 0; from < automaton->accepting.size(); ++from) {
    if (automaton->accepting[from]) accepting.push_back(from);
    std::map<std::uint32_t, CodePointSet> edges;  // what leads to another state
    for (std::size_t i = 0; i < classes; ++i) {
      const std::uint32_t target = automaton->targets[from * classes + i];
      if (is_dead[target]) continue;
      CodePointSet& label = edges[target];
      label = label.united(automaton->classes[i]);
    }
    for (const auto& [to, set] : edges) {
      auto label = std::find_if(labels.begin(), labels.end(), [&wanted = set](const auto& l) { return l.first == wanted; });
      if (label == labels.end()) label = labels.insert(labels.end(), {set, character(set)});
      graph.push_back({from, to, label->second});
    }
  }
  const RuleId rule = grammar.declare("text");
  grammar.define(rule, grammar.graph(std::move(graph), std::move(accepting)));
  return grammar.call(rule);
}

}  // namespace braid::grammar
