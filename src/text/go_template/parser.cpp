#include "text/go_template/parser.h"

#include "text/go_template/functions.h"
#include "text/go_template/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::text::go {
namespace {

constexpr int kDepth = 64;  // of blocks, and of parentheses
constexpr std::size_t kMostDefined = 100;

bool is_blank(const Nodes& nodes) {
  return std::ranges::all_of(nodes, [](const Node& node) {
    return node.kind == Node::Kind::kText && node.text.find_first_not_of(" \t\r\n") == std::string::npos;
  });
}

class Parser {
 public:
  explicit Parser(std::vector<Word> words) : words_(std::move(words)) {}

  Result<Source> run() {
    Source source;
    const Result<std::string> end = read_block(source.nodes, 0);
    if (!end) return end.error();
    if (!end->empty()) return fault(fmt::format("'{}' without a block", *end));
    for (Named& one : named_) {
      if (!one.nodes) return fault_at(one.line, fmt::format("there is no template '{}'", one.name));
      source.defined.push_back(std::move(*one.nodes));
    }
    return source;
  }

 private:
  using Kind = Word::Kind;

  struct Named {
    std::string name;
    int line = 1;  // where it is first spoken of
    std::optional<Nodes> nodes = {};
  };

  bool is_over() const { return at_ == words_.size(); }
  const Word& word() const { return words_[at_]; }
  bool is(Kind kind, std::string_view text) const { return !is_over() && word().kind == kind && word().text == text; }
  bool take(Kind kind, std::string_view text) {
    if (!is(kind, text)) return false;
    ++at_;
    return true;
  }
  bool at_end() const { return is_over() || word().kind == Kind::kEnd; }
  Error fault(const std::string& what) const { return fault_at(line(), what); }
  int line() const { return words_.empty() ? 1 : words_[std::min(at_, words_.size() - 1)].line; }
  static Error fault_at(int line, const std::string& what) {
    return invalid_argument(fmt::format("the template, line {}: {}", line, what), "template");
  }
  Result<void> end_action() {
    if (!is_over() && word().kind == Kind::kEnd) return ++at_, Result<void>();
    return fault(is_over() ? "an action has no end" : fmt::format("unexpected '{}'", word().text));
  }

  // Up to the action that ends it, "end" or "else", which is named and whose first word is taken; "": the template is over.
  Result<std::string> read_block(Nodes& nodes, int depth) {
    if (depth > kDepth) return fault("blocks nest too deeply");
    while (!is_over()) {
      if (word().kind == Kind::kText) {
        nodes.push_back({.kind = Node::Kind::kText, .place = place_++, .text = std::move(words_[at_++].text)});
        continue;
      }
      ++at_;  // kBegin
      if (is(Kind::kName, "end") || is(Kind::kName, "else")) return words_[at_++].text;
      if (take(Kind::kName, "define")) {
        if (depth > 0) return fault("'define' within a block");
        const Result<std::size_t> number = read_name();
        if (!number) return number.error();
        if (const Result<void> read = read_defined(*number, depth); !read) return read.error();
        continue;
      }
      Result<Node> node = read_action(depth);
      if (!node) return node.error();
      nodes.push_back(std::move(*node));
    }
    if (depth > 0) return fault("a block has no end");
    return std::string();
  }

  Result<Node> read_action(int depth) {
    for (const auto& [name, kind] :
         {std::pair("if", Node::Kind::kIf), std::pair("with", Node::Kind::kWith), std::pair("range", Node::Kind::kRange)})
      if (take(Kind::kName, name)) return read_branch(kind, depth);
    for (const char* name : {"template", "block"})
      if (take(Kind::kName, name)) return read_call(name == std::string_view("block"), depth);
    Node node{.kind = Node::Kind::kAction, .place = place_++};
    if (is(Kind::kName, "break") || is(Kind::kName, "continue")) {
      if (loops_ == 0) return fault(fmt::format("'{}' outside of 'range'", word().text));
      node.kind = word().text == "break" ? Node::Kind::kBreak : Node::Kind::kContinue;
      ++at_;
    } else {
      Result<Pipeline> pipeline = read_pipeline(0);
      if (!pipeline) return pipeline.error();
      node.pipeline = std::move(*pipeline);
    }
    if (const Result<void> ended = end_action(); !ended) return ended.error();
    return node;
  }

  // Of a template, in quotes: its number.
  Result<std::size_t> read_name() {
    if (is_over() || word().kind != Kind::kString) return fault("the name of a template is missing");
    const std::string& name = word().text;
    const auto found = std::ranges::find(named_, name, &Named::name);
    const auto number = static_cast<std::size_t>(found - named_.begin());
    if (found == named_.end()) {
      if (number == kMostDefined) return fault("it has too many templates");
      named_.push_back({name, word().line});
    }
    ++at_;
    return number;
  }

  // From the end of the action that names it, over the action that ends it. One that is blank gives way to another of its name.
  Result<void> read_defined(std::size_t number, int depth) {
    const int begin = line();
    if (const Result<void> ended = end_action(); !ended) return ended;
    const int loops = std::exchange(loops_, 0);
    Nodes nodes;
    const Result<std::string> end = read_block(nodes, depth + 1);
    if (!end) return end.error();
    if (*end != "end") return fault("'else' without a condition");
    loops_ = loops;
    std::optional<Nodes>& known = named_[number].nodes;
    if (known && !is_blank(*known) && !is_blank(nodes)) return fault_at(begin, fmt::format("a second template '{}'", named_[number].name));
    if (!known || is_blank(*known)) known = std::move(nodes);
    return end_action();
  }

  // From behind "template" or "block", which is defined where it is called.
  Result<Node> read_call(bool defines, int depth) {
    Node node{.kind = Node::Kind::kTemplate, .place = place_++};
    node.pipeline.line = line();
    const Result<std::size_t> number = read_name();
    if (!number) return number.error();
    node.callee = *number;
    if (defines || !at_end()) {
      Result<Pipeline> pipeline = read_pipeline(0);
      if (!pipeline) return pipeline.error();
      node.pipeline = std::move(*pipeline);
    }
    if (const Result<void> ended = defines ? read_defined(*number, depth) : end_action(); !ended) return ended.error();
    return node;
  }

  // From behind its keyword. "else if" is a block within the other branch, which ends with it.
  Result<Node> read_branch(Node::Kind kind, int depth) {
    Node node{.kind = kind, .place = place_++};
    Result<Pipeline> pipeline = read_pipeline(0);
    if (!pipeline) return pipeline.error();
    node.pipeline = std::move(*pipeline);
    if (const Result<void> ended = end_action(); !ended) return ended.error();
    loops_ += kind == Node::Kind::kRange ? 1 : 0;
    const Result<std::string> end = read_block(node.body, depth + 1);
    if (!end) return end.error();
    loops_ -= kind == Node::Kind::kRange ? 1 : 0;
    if (*end == "else") {
      for (const auto& [name, other] : {std::pair("if", Node::Kind::kIf), std::pair("with", Node::Kind::kWith)}) {
        if (!take(Kind::kName, name)) continue;
        Result<Node> inner = depth < kDepth ? read_branch(other, depth + 1) : Result<Node>(fault("blocks nest too deeply"));
        if (!inner) return inner.error();
        node.otherwise.push_back(std::move(*inner));
        return node;
      }
      if (const Result<void> ended = end_action(); !ended) return ended.error();
      const Result<std::string> last = read_block(node.otherwise, depth + 1);
      if (!last) return last.error();
      if (*last != "end") return fault("'else' after 'else'");
    }
    if (const Result<void> ended = end_action(); !ended) return ended.error();
    return node;
  }

  Result<Pipeline> read_pipeline(int depth) {
    if (depth > kDepth) return fault("parentheses nest too deeply");
    Pipeline pipeline;
    if (!is_over()) pipeline.line = word().line;
    read_variables(pipeline);
    do {
      Command command;
      while (!at_end() && !is(Kind::kSign, "|") && !is(Kind::kSign, ")")) {
        Result<Operand> operand = read_operand(depth);
        if (!operand) return operand.error();
        command.push_back(std::move(*operand));
      }
      if (command.empty()) return fault("a value is missing");
      if (command.size() > 1 && command.front().kind != Operand::Kind::kFunction) return fault("a value takes no arguments");
      if (!pipeline.commands.empty() && command.front().kind != Operand::Kind::kFunction) return fault("only functions stand behind '|'");
      pipeline.commands.push_back(std::move(command));
    } while (take(Kind::kSign, "|"));
    return pipeline;
  }

  // "$a :=", "$a, $b :=" or "$a =", if the pipeline begins so.
  void read_variables(Pipeline& pipeline) {
    std::size_t at = at_;
    std::vector<std::string> names;
    while (at + 1 < words_.size() && words_[at].kind == Kind::kVariable && words_[at + 1].kind == Kind::kSign) {
      names.push_back(words_[at].text);
      const std::string& sign = words_[at + 1].text;
      at += 2;
      if (sign == "," && names.size() < 2) continue;
      if (sign != ":=" && sign != "=") return;
      pipeline.variables = std::move(names);
      pipeline.declares = sign == ":=";
      at_ = at;
      return;
    }
  }

  Result<Operand> read_operand(int depth) {
    const Word& first = word();
    Operand operand;
    switch (first.kind) {
      case Kind::kString:
        operand.literal = first.text;
        break;
      case Kind::kNumber: {
        std::int64_t whole = 0;
        const char* const end = first.text.data() + first.text.size();
        const char* const begin = first.text.data() + (first.text.front() == '+' ? 1 : 0);
        if (std::from_chars(begin, end, whole).ptr == end) {
          operand.literal = whole;
        } else {
          double number = 0.0;
          if (std::from_chars(begin, end, number).ptr != end) return fault(fmt::format("'{}' is no number", first.text));
          operand.literal = number;
        }
        break;
      }
      case Kind::kField:
        operand.kind = Operand::Kind::kDot;
        if (!first.text.empty()) operand.fields.push_back(first.text);
        break;
      case Kind::kVariable:
        operand.kind = Operand::Kind::kVariable;
        operand.name = first.text;
        break;
      case Kind::kName:
        if (first.text == "true" || first.text == "false") {
          operand.literal = first.text == "true";
        } else if (first.text != "nil") {
          if (!is_function(first.text)) return fault(fmt::format("there is no function '{}'", first.text));
          operand.kind = Operand::Kind::kFunction;
          operand.name = first.text;
        }
        break;
      case Kind::kSign:
      case Kind::kText:
      case Kind::kBegin:
      case Kind::kEnd: {
        if (!take(Kind::kSign, "(")) return fault(fmt::format("unexpected '{}'", first.text));
        Result<Pipeline> inner = read_pipeline(depth + 1);
        if (!inner) return inner.error();
        if (!is(Kind::kSign, ")")) return fault("a ')' is missing");
        operand.kind = Operand::Kind::kPipeline;
        operand.pipeline = std::make_shared<const Pipeline>(std::move(*inner));
      }
    }
    ++at_;
    while (!is_over() && word().kind == Kind::kField && word().is_joined && !word().text.empty())
      operand.fields.push_back(words_[at_++].text);
    return operand;
  }

  std::vector<Word> words_;
  std::size_t at_ = 0;
  int place_ = 0;
  int loops_ = 0;  // that it stands within
  std::vector<Named> named_;
};

}  // namespace

Result<Source> parse(std::string_view source) {
  Result<std::vector<Word>> words = split(source);
  if (!words) return words.error();
  return Parser(std::move(*words)).run();
}

}  // namespace braid::text::go
