#include "text/go_template/program.h"

#include "text/go_template/functions.h"
#include "text/go_template/parser.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <utility>
#include <vector>

namespace braid::text::go {
namespace {

constexpr std::int64_t kMostSteps = 1'000'000;             // of one execution: nodes, turns of loops, calls
constexpr int kMostDepth = 500;                            // of blocks within blocks, through templates that call each other
constexpr std::size_t kReadBytes = 4096;                   // of a call's arguments, that are a step more
constexpr std::size_t kWrittenBytes = 256;                 // likewise of what it makes
constexpr std::size_t kReadMembers = 16;                   // likewise of an object that something is looked for in
constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // that are written

// "ToolCallID" as JSON has it: "tool_call_id".
std::string json_name(std::string_view field) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  std::string name;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (i > 0 && is_upper(field[i]) && !is_upper(field[i - 1])) name += '_';
    name += is_upper(field[i]) ? static_cast<char>(field[i] - 'A' + 'a') : field[i];
  }
  return name;
}

Term member(const Term& term, const std::string& field) {
  if (term.is_list()) return {};
  const Value* found = term.value().find(field);
  if (found == nullptr) found = term.value().find(json_name(field));
  return found != nullptr ? Term::part(term, *found) : Term();
}

// The place of the last node that is executed: of the text itself, then of each template that it defines.
using Lasts = std::vector<int>;
constexpr int kWhole = std::numeric_limits<int>::max();

class Execution {
 public:
  Execution(const Source& source, Value root, Lasts lasts) : source_(source), lasts_(std::move(lasts)) {
    variables_.emplace_back("$", Term(std::move(root)));
  }

  Result<std::string> run() {
    const Term root = variables_.front().second;
    const Result<Flow> flow = execute(source_.nodes, root);
    if (!flow) return flow.error();
    return std::move(out_);
  }

 private:
  enum class Flow { kOn, kBreak, kContinue };

  static Error fault(int line, const std::string& what) {
    return invalid_argument(fmt::format("the template, line {}: {}", line, what), "template");
  }

  // Whoever sends a template chooses how much work it is.
  Result<void> charge(std::size_t steps, int line) {
    steps_ += static_cast<std::int64_t>(steps);
    if (steps_ <= kMostSteps && out_.size() <= kMostBytes) return {};
    return fault(line, "it loops too often, or writes too much");
  }

  Result<Flow> execute(const Nodes& nodes, const Term& dot) {
    if (depth_ == kMostDepth) return fault(nodes.empty() ? 1 : nodes.front().pipeline.line, "its templates call each other too deeply");
    ++depth_;
    const std::size_t known = variables_.size();  // those of the block go with it
    Flow flow = Flow::kOn;
    for (const Node& node : nodes) {
      if (node.place > lasts_[current_]) break;
      if (const Result<void> paid = charge(1, node.pipeline.line); !paid) return paid.error();
      const Result<Flow> next = execute(node, dot);
      if (!next) return next;
      flow = *next;
      if (flow != Flow::kOn) break;
    }
    variables_.resize(known);
    --depth_;
    return flow;
  }

  Result<Flow> execute(const Node& node, const Term& dot) {
    switch (node.kind) {
      case Node::Kind::kText:
        out_ += node.text;
        return Flow::kOn;
      case Node::Kind::kBreak:
        return Flow::kBreak;
      case Node::Kind::kContinue:
        return Flow::kContinue;
      case Node::Kind::kAction: {
        const Result<Term> term = evaluate(node.pipeline, dot);
        if (!term) return term.error();
        if (!node.pipeline.variables.empty()) return set(node.pipeline, *term);
        out_ += text_of(*term);
        return Flow::kOn;
      }
      case Node::Kind::kIf:
      case Node::Kind::kWith:
        return execute_branch(node, dot);
      case Node::Kind::kRange:
        return execute_range(node, dot);
      case Node::Kind::kTemplate:
        return execute_defined(node, dot);
    }
    return Flow::kOn;
  }

  Result<Flow> set(const Pipeline& pipeline, const Term& term) {
    const std::string& name = pipeline.variables.front();
    if (pipeline.declares) {
      variables_.emplace_back(name, term);
      return Flow::kOn;
    }
    Term* const known = variable(name);
    if (known == nullptr) return fault(pipeline.line, fmt::format("there is no variable '{}'", name));
    *known = term;
    return Flow::kOn;
  }

  Result<Flow> execute_branch(const Node& node, const Term& dot) {
    const Result<Term> term = evaluate(node.pipeline, dot);
    if (!term) return term.error();
    const bool holds = is_true(*term);
    const std::size_t known = variables_.size();
    if (!node.pipeline.variables.empty())
      if (const Result<Flow> is_set = set(node.pipeline, *term); !is_set) return is_set;
    const Result<Flow> flow = execute(holds ? node.body : node.otherwise, holds && node.kind == Node::Kind::kWith ? *term : dot);
    variables_.resize(known);
    return flow;
  }

  // Of a list its places, of an object its names, which Go goes through in their order, of a number those below it.
  using Items = std::vector<std::pair<Term, Term>>;
  Result<Items> items_of(const Term& term, int line) {
    Items items;
    if (const auto size = term.size())
      if (const Result<void> paid = charge(*size, line); !paid) return paid.error();
    if (term.is_list()) {
      for (const Value& one : term.items()) items.emplace_back(Term(Value(static_cast<std::int64_t>(items.size()))), Term::part(term, one));
    } else if (const auto* dict = term.value().get_if<ValueDict>()) {
      for (const auto& [name, one] : *dict) items.emplace_back(Term(Value(name)), Term::part(term, one));
      std::ranges::sort(items, {}, [](const auto& item) -> const std::string& { return *item.first.text(); });
    } else if (const auto* count = term.value().get_if<std::int64_t>()) {
      const std::int64_t most = std::clamp<std::int64_t>(*count, 0, kMostSteps + 1);
      if (const Result<void> paid = charge(static_cast<std::size_t>(most), line); !paid) return paid.error();
      for (std::int64_t i = 0; i < most; ++i) items.emplace_back(Term(Value(i)), Term(Value(i)));
    } else if (!term.value().is_null()) {
      return fault(line, "'range' wants a list, an object or a number");
    }
    return items;
  }

  Result<Flow> execute_range(const Node& node, const Term& dot) {
    const Result<Term> term = evaluate(node.pipeline, dot);
    if (!term) return term.error();
    const Result<Items> items = items_of(*term, node.pipeline.line);
    if (!items) return items.error();
    if (items->empty()) return execute(node.otherwise, dot);
    for (const auto& [place, item] : *items) {
      const std::size_t known = variables_.size();
      const auto& names = node.pipeline.variables;
      if (names.size() == 2) variables_.emplace_back(names[0], place);
      if (!names.empty()) variables_.emplace_back(names.back(), item);
      const Result<Flow> flow = execute(node.body, item);
      variables_.resize(known);
      if (!flow) return flow;
      if (*flow == Flow::kBreak) break;
    }
    return Flow::kOn;
  }

  // It sees nothing of who calls it but the value that it is given.
  Result<Flow> execute_defined(const Node& node, const Term& dot) {
    const Result<Term> given = evaluate(node.pipeline, dot);
    if (!given) return given.error();
    auto variables = std::exchange(variables_, {{"$", *given}});
    const std::size_t current = std::exchange(current_, node.callee + 1);
    const Result<Flow> flow = execute(source_.defined[node.callee], *given);
    current_ = current;
    variables_ = std::move(variables);
    return flow;
  }

  Term* variable(std::string_view name) {
    const auto found = std::find_if(variables_.rbegin(), variables_.rend(), [name](const auto& one) { return one.first == name; });
    return found != variables_.rend() ? &found->second : nullptr;
  }

  Result<Term> evaluate(const Pipeline& pipeline, const Term& dot) {
    Term term;
    for (std::size_t i = 0; i < pipeline.commands.size(); ++i) {
      Result<Term> next = evaluate(pipeline.commands[i], i > 0 ? &term : nullptr, dot, pipeline.line);
      if (!next) return next;
      term = std::move(*next);
    }
    return term;
  }

  // `piped`: the last argument, or null.
  Result<Term> evaluate(const Command& command, const Term* piped, const Term& dot, int line) {
    const Operand& first = command.front();
    if (first.kind != Operand::Kind::kFunction) return value_of(first, dot, line);
    const bool is_and = first.name == "and";
    std::vector<Term> arguments;
    std::size_t steps = 1;
    const std::size_t count = command.size() - 1 + (piped != nullptr ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i) {
      Result<Term> argument = i + 1 < command.size() ? value_of(command[i + 1], dot, line) : Result<Term>(*piped);
      if (!argument) return argument;
      if ((is_and || first.name == "or") && (i + 1 == count || is_true(*argument) != is_and)) return argument;
      if (argument->text() != nullptr) steps += argument->text()->size() / kReadBytes;
      steps += argument->members() / kReadMembers;
      arguments.push_back(std::move(*argument));
    }
    Result<Term> called = call(first.name, arguments);
    if (called && called->text() != nullptr) steps += called->text()->size() / kWrittenBytes;
    if (const Result<void> paid = charge(steps, line); !paid) return paid.error();
    return called ? with_fields(*called, first.fields, line) : called;
  }

  Result<Term> value_of(const Operand& operand, const Term& dot, int line) {
    switch (operand.kind) {
      case Operand::Kind::kLiteral:
        return Term(Value(operand.literal));
      case Operand::Kind::kDot:
        return with_fields(dot, operand.fields, line);
      case Operand::Kind::kVariable: {
        const Term* known = variable(operand.name);
        if (known == nullptr) return fault(line, fmt::format("there is no variable '{}'", operand.name));
        return with_fields(*known, operand.fields, line);
      }
      case Operand::Kind::kFunction:
        return evaluate(Command{operand}, nullptr, dot, line);
      case Operand::Kind::kPipeline: {
        Result<Term> inner = evaluate(*operand.pipeline, dot);
        return inner ? with_fields(*inner, operand.fields, line) : inner;
      }
    }
    return Term();
  }

  Result<Term> with_fields(Term term, const std::vector<std::string>& fields, int line) {
    for (const std::string& field : fields) {
      if (const Result<void> paid = charge(term.members() / kReadMembers, line); !paid) return paid.error();
      term = member(term, field);
    }
    return term;
  }

  const Source& source_;
  const Lasts lasts_;
  std::size_t current_ = 0;  // of the lasts
  int depth_ = 0;
  std::vector<std::pair<std::string, Term>> variables_;  // the last one of a name counts
  std::string out_;
  std::int64_t steps_ = 0;
};

bool takes(const Pipeline& pipeline, std::string_view field) {
  for (const Command& command : pipeline.commands)
    for (const Operand& operand : command) {
      if (std::ranges::find(operand.fields, field) != operand.fields.end()) return true;
      if (operand.pipeline != nullptr && takes(*operand.pipeline, field)) return true;
    }
  return false;
}

// Calls use(node) for all, in the order of the source, until that returns true.
template <class Use>
bool any_of(const Nodes& nodes, const Use& use) {
  return std::ranges::any_of(nodes, [&](const Node& node) { return use(node) || any_of(node.body, use) || any_of(node.otherwise, use); });
}

// Where each is when it takes the field, itself or by a template that it calls.
Lasts lasts_with(const Source& source, std::string_view field) {
  Lasts lasts(source.defined.size() + 1, kWhole);
  const auto find = [&](const Nodes& nodes, int& last) {
    return any_of(nodes, [&](const Node& node) {
      const bool calls = node.kind == Node::Kind::kTemplate && lasts[node.callee + 1] != kWhole;
      const bool is_first = (calls || (node.kind == Node::Kind::kAction && takes(node.pipeline, field))) && node.place < last;
      if (is_first) last = node.place;
      return is_first;
    });
  };
  for (bool changed = true; changed;) {
    changed = find(source.nodes, lasts.front());
    for (std::size_t i = 0; i < source.defined.size(); ++i) changed = find(source.defined[i], lasts[i + 1]) || changed;
  }
  return lasts;
}

}  // namespace

Result<Program> Program::parse(std::string_view source) {
  Result<Source> parsed = go::parse(source);
  if (!parsed) return parsed.error();
  return Program(std::move(*parsed));
}

Result<std::string> Program::execute(Value root) const {
  return Execution(source_, std::move(root), Lasts(source_.defined.size() + 1, kWhole)).run();
}

Result<std::string> Program::execute_up_to(Value root, std::string_view field) const {
  return Execution(source_, std::move(root), lasts_with(source_, field)).run();
}

bool Program::mentions(std::string_view field) const {
  const auto does = [field](const Nodes& nodes) {
    return any_of(nodes, [field](const Node& node) { return takes(node.pipeline, field); });
  };
  return does(source_.nodes) || std::ranges::any_of(source_.defined, does);
}

void Program::append_action(std::string field) {
  Operand operand{.kind = Operand::Kind::kDot, .fields = {std::move(field)}};
  Node node{.kind = Node::Kind::kAction, .place = kWhole - 1};
  node.pipeline.commands = {{std::move(operand)}};
  source_.nodes.push_back(std::move(node));
}

}  // namespace braid::text::go
