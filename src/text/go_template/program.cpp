#include "text/go_template/program.h"

#include "text/go_template/functions.h"
#include "text/go_template/parser.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace braid::text::go {
namespace {

constexpr std::int64_t kMostNodes = 1'000'000;             // that one execution visits, and turns of its loops
constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // that it writes

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

const Value& member(const Value& value, const std::string& field) {
  static const Value kNil;
  if (const Value* found = value.find(field)) return *found;
  const Value* found = value.find(json_name(field));
  return found != nullptr ? *found : kNil;
}

class Execution {
 public:
  Execution(const Value& root, int last) : last_(last) { variables_.emplace_back("$", root); }

  Result<std::string> run(const Nodes& nodes) {
    const Result<Flow> flow = execute(nodes, Value(variables_.front().second));
    if (!flow) return flow.error();
    return std::move(out_);
  }

 private:
  enum class Flow { kOn, kBreak, kContinue };

  static Error fault(int line, const std::string& what) {
    return invalid_argument(fmt::format("the template, line {}: {}", line, what), "template");
  }

  Result<Flow> execute(const Nodes& nodes, const Value& dot) {
    const std::size_t known = variables_.size();  // those of the block go with it
    Flow flow = Flow::kOn;
    for (const Node& node : nodes) {
      if (node.place > last_) break;
      if (++visited_ > kMostNodes || out_.size() > kMostBytes) return fault(node.pipeline.line, "it loops too often, or writes too much");
      Result<Flow> next = execute(node, dot);
      if (!next) return next;
      flow = *next;
      if (flow != Flow::kOn) break;
    }
    variables_.resize(known);
    return flow;
  }

  Result<Flow> execute(const Node& node, const Value& dot) {
    switch (node.kind) {
      case Node::Kind::kText:
        out_ += node.text;
        return Flow::kOn;
      case Node::Kind::kBreak:
        return Flow::kBreak;
      case Node::Kind::kContinue:
        return Flow::kContinue;
      case Node::Kind::kAction: {
        Result<Value> value = evaluate(node.pipeline, dot);
        if (!value) return value.error();
        if (node.pipeline.variables.empty()) {
          out_ += text_of(*value);
          return Flow::kOn;
        }
        return set(node.pipeline, std::move(*value));
      }
      case Node::Kind::kIf:
      case Node::Kind::kWith:
        return execute_branch(node, dot);
      case Node::Kind::kRange:
        return execute_range(node, dot);
    }
    return Flow::kOn;
  }

  Result<Flow> set(const Pipeline& pipeline, Value value) {
    const std::string& name = pipeline.variables.front();
    if (pipeline.declares) {
      variables_.emplace_back(name, std::move(value));
      return Flow::kOn;
    }
    Value* const known = variable(name);
    if (known == nullptr) return fault(pipeline.line, fmt::format("there is no variable '{}'", name));
    *known = std::move(value);
    return Flow::kOn;
  }

  Result<Flow> execute_branch(const Node& node, const Value& dot) {
    Result<Value> value = evaluate(node.pipeline, dot);
    if (!value) return value.error();
    const bool holds = is_true(*value);
    const std::size_t known = variables_.size();
    if (!node.pipeline.variables.empty())
      if (Result<Flow> is_set = set(node.pipeline, *value); !is_set) return is_set;
    Result<Flow> flow = execute(holds ? node.body : node.otherwise, holds && node.kind == Node::Kind::kWith ? *value : dot);
    variables_.resize(known);
    return flow;
  }

  Result<Flow> execute_range(const Node& node, const Value& dot) {
    const Result<Value> value = evaluate(node.pipeline, dot);
    if (!value) return value.error();
    std::vector<std::pair<Value, const Value*>> items;  // place or name, and what is there
    std::vector<Value> numbers;
    if (const auto* list = value->get_if<ValueList>()) {
      for (const Value& one : *list) items.emplace_back(Value(static_cast<std::int64_t>(items.size())), &one);
    } else if (const auto* dict = value->get_if<ValueDict>()) {  // Go goes by the names' order
      for (const auto& [name, one] : *dict) items.emplace_back(Value(name), &one);
      std::ranges::sort(items, {}, [](const auto& item) -> const std::string& { return *item.first.template get_if<std::string>(); });
    } else if (const auto* count = value->get_if<std::int64_t>()) {
      for (std::int64_t i = 0; i < std::min(*count, kMostNodes); ++i) numbers.emplace_back(i);
      for (const Value& number : numbers) items.emplace_back(number, &number);
    } else if (!value->is_null()) {
      return fault(node.pipeline.line, "'range' wants a list, an object or a number");
    }
    if (items.empty()) return execute(node.otherwise, dot);
    visited_ += static_cast<std::int64_t>(items.size());
    if (visited_ > kMostNodes) return fault(node.pipeline.line, "it loops too often");
    for (const auto& [place, item] : items) {
      const std::size_t known = variables_.size();
      const auto& names = node.pipeline.variables;
      if (names.size() == 2) variables_.emplace_back(names[0], place);
      if (!names.empty()) variables_.emplace_back(names.back(), *item);
      Result<Flow> flow = execute(node.body, *item);
      variables_.resize(known);
      if (!flow) return flow;
      if (*flow == Flow::kBreak) break;
    }
    return Flow::kOn;
  }

  Value* variable(std::string_view name) {
    const auto found = std::find_if(variables_.rbegin(), variables_.rend(), [name](const auto& one) { return one.first == name; });
    return found != variables_.rend() ? &found->second : nullptr;
  }

  Result<Value> evaluate(const Pipeline& pipeline, const Value& dot) {
    Value value;
    for (std::size_t i = 0; i < pipeline.commands.size(); ++i) {
      Result<Value> next = evaluate(pipeline.commands[i], i > 0 ? &value : nullptr, dot, pipeline.line);
      if (!next) return next;
      value = std::move(*next);
    }
    return value;
  }

  // `piped`: the last argument, or null.
  Result<Value> evaluate(const Command& command, const Value* piped, const Value& dot, int line) {
    const Operand& first = command.front();
    if (first.kind != Operand::Kind::kFunction) return value_of(first, dot, line);
    const bool is_and = first.name == "and";
    std::vector<Value> arguments;
    const std::size_t count = command.size() - 1 + (piped != nullptr ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i) {
      Result<Value> argument = i + 1 < command.size() ? value_of(command[i + 1], dot, line) : Result<Value>(*piped);
      if (!argument) return argument;
      arguments.push_back(std::move(*argument));
      if ((is_and || first.name == "or") && (i + 1 == count || is_true(arguments.back()) != is_and)) return std::move(arguments.back());
    }
    return with_fields(call(first.name, arguments), first.fields);
  }

  Result<Value> value_of(const Operand& operand, const Value& dot, int line) {
    switch (operand.kind) {
      case Operand::Kind::kLiteral:
        return operand.literal;
      case Operand::Kind::kDot:
        return with_fields(dot, operand.fields);
      case Operand::Kind::kVariable: {
        const Value* known = variable(operand.name);
        if (known == nullptr) return fault(line, fmt::format("there is no variable '{}'", operand.name));
        return with_fields(*known, operand.fields);
      }
      case Operand::Kind::kFunction:
        return evaluate(Command{operand}, nullptr, dot, line);
      case Operand::Kind::kPipeline:
        return with_fields(evaluate(*operand.pipeline, dot), operand.fields);
    }
    return Value();
  }

  static Result<Value> with_fields(const Value& value, const std::vector<std::string>& fields) {
    const Value* at = &value;
    for (const std::string& field : fields) at = &member(*at, field);
    return *at;
  }
  static Result<Value> with_fields(Result<Value> value, const std::vector<std::string>& fields) {
    return !value || fields.empty() ? std::move(value) : with_fields(*value, fields);
  }

  const int last_;
  std::vector<std::pair<std::string, Value>> variables_;  // the last one of a name counts
  std::string out_;
  std::int64_t visited_ = 0;
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

}  // namespace

Result<Program> Program::parse(std::string_view source) {
  Result<Nodes> nodes = go::parse(source);
  if (!nodes) return nodes.error();
  return Program(std::move(*nodes));
}

Result<std::string> Program::execute(const Value& root, int last) const { return Execution(root, last).run(nodes_); }

bool Program::mentions(std::string_view field) const {
  return any_of(nodes_, [field](const Node& node) { return takes(node.pipeline, field); });
}

std::optional<int> Program::first_action_with(std::string_view field) const {
  std::optional<int> place;
  any_of(nodes_, [&](const Node& node) {
    if (node.kind != Node::Kind::kAction || !takes(node.pipeline, field)) return false;
    place = node.place;
    return true;
  });
  return place;
}

void Program::append_action(std::string field) {
  Operand operand{.kind = Operand::Kind::kDot, .fields = {std::move(field)}};
  Node node{.kind = Node::Kind::kAction, .place = kWhole - 1};
  node.pipeline.commands = {{std::move(operand)}};
  nodes_.push_back(std::move(node));
}

}  // namespace braid::text::go
