#include "text/go_template/parser.h"

#include "text/go_template/functions.h"
#include "text/go_template/lexer.h"

#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::text::go {
namespace {

constexpr int kDepth = 64;  // of blocks, and of parentheses

class Parser {
 public:
  explicit Parser(std::vector<Word> words) : words_(std::move(words)) {}

  Result<Nodes> run() {
    Nodes nodes;
    const Result<std::string> end = read_block(nodes, 0);
    if (!end) return end.error();
    if (!end->empty()) return fault(fmt::format("'{}' without a block", *end));
    return nodes;
  }

 private:
  using Kind = Word::Kind;

  bool is_over() const { return at_ == words_.size(); }
  const Word& word() const { return words_[at_]; }
  bool is(Kind kind, std::string_view text) const { return !is_over() && word().kind == kind && word().text == text; }
  bool take(Kind kind, std::string_view text) {
    if (!is(kind, text)) return false;
    ++at_;
    return true;
  }
  bool at_end() const { return is_over() || word().kind == Kind::kEnd; }
  Error fault(const std::string& what) const {
    const int line = words_.empty() ? 1 : words_[std::min(at_, words_.size() - 1)].line;
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
    Node node{.kind = Node::Kind::kAction, .place = place_++};
    if (take(Kind::kName, "break")) {
      node.kind = Node::Kind::kBreak;
    } else if (take(Kind::kName, "continue")) {
      node.kind = Node::Kind::kContinue;
    } else {
      for (const char* unknown : {"define", "template", "block"})
        if (is(Kind::kName, unknown)) return fault(fmt::format("'{}' is not supported", unknown));
      Result<Pipeline> pipeline = read_pipeline(0);
      if (!pipeline) return pipeline.error();
      node.pipeline = std::move(*pipeline);
    }
    if (const Result<void> ended = end_action(); !ended) return ended.error();
    return node;
  }

  // From behind its keyword. "else if" is a block within the other branch, which ends with it.
  Result<Node> read_branch(Node::Kind kind, int depth) {
    Node node{.kind = kind, .place = place_++};
    Result<Pipeline> pipeline = read_pipeline(0);
    if (!pipeline) return pipeline.error();
    node.pipeline = std::move(*pipeline);
    if (const Result<void> ended = end_action(); !ended) return ended.error();
    const Result<std::string> end = read_block(node.body, depth + 1);
    if (!end) return end.error();
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
      default: {
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
};

}  // namespace

Result<Nodes> parse(std::string_view source) {
  Result<std::vector<Word>> words = split(source);
  if (!words) return words.error();
  return Parser(std::move(*words)).run();
}

}  // namespace braid::text::go
