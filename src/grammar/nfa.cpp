#include "grammar/nfa.h"

#include "grammar/word_finder.h"

#include <algorithm>
#include <tuple>

namespace braid::grammar {
namespace {

constexpr std::uint32_t kUnrollWeight = 40;  // a bounded repetition up to this size needs no counter
constexpr std::uint32_t kUnrollNullable = 20'000;
constexpr std::ptrdiff_t kFewBranches = 8;  // alternatives of a choice that may stay calls
constexpr std::size_t kMaxDepth = 4'000;    // of nested expressions: bounds recursion

// Bytes are appended in order: neighbours that lead to one node are one range.
void append_byte(std::vector<NfaNode::Bytes>& bytes, std::uint8_t byte, std::uint32_t target) {
  if (!bytes.empty() && bytes.back().target == target && bytes.back().last + 1 == byte) {
    bytes.back().last = byte;
  } else {
    bytes.push_back({byte, byte, target});
  }
}

}  // namespace

std::uint32_t Units::of_expr(ExprId expr) {
  const auto [it, fresh] = by_expr_.try_emplace(expr, static_cast<std::uint32_t>(units_.size()));
  if (fresh) units_.push_back({.expr = expr});
  return it->second;
}

std::uint32_t Units::of_repeat(ExprId body, std::uint32_t min, std::uint32_t max) {
  const std::uint32_t body_unit = of_expr(body);
  const auto [it, fresh] = by_repeat_.try_emplace({body_unit, min, max}, static_cast<std::uint32_t>(units_.size()));
  if (fresh) units_.push_back({.expr = body, .counted = true, .body = body_unit, .min = min, .max = max});
  return it->second;
}

NfaBuilder::NfaBuilder(const Grammar& grammar, const Measure& measure, Units& units, const BuildLimits& limits, Inlining inlining)
    : grammar_(grammar), measure_(measure), units_(units), node_limit_(limits.states * 4), inlining_(inlining), nodes_(1) {}

std::uint32_t NfaBuilder::add() {
  if (nodes_.size() >= node_limit_) {
    overflowed_ = true;
    return 0;
  }
  nodes_.emplace_back();
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t NfaBuilder::build(ExprId id, std::uint32_t next) {
  if (overflowed_) return 0;
  const std::uint64_t key = std::uint64_t{id} << 32 | next;
  if (const auto it = built_.find(key); it != built_.end()) return it->second;
  if (++depth_ > kMaxDepth) overflowed_ = true;
  const Expr& expr = grammar_.expr(id);
  const bool apart = inlining_ == Inlining::kBranches && is_large_choice(expr);
  const std::uint32_t node = apart ? call(units_.of_expr(id), next) : build_new(expr, next);
  --depth_;
  built_.emplace(key, node);
  return node;
}

std::uint32_t NfaBuilder::build_new(const Expr& expr, std::uint32_t next) {
  switch (expr.kind) {
    case ExprKind::kBytes:
      return build_bytes(expr.bytes, next);
    case ExprKind::kChars:
      return build_chars(expr.chars, next);
    case ExprKind::kSequence:
      for (auto child = expr.children.rbegin(); child != expr.children.rend(); ++child) next = build(*child, next);
      return next;
    case ExprKind::kChoice: {
      const std::uint32_t node = add();
      for (const ExprId child : expr.children) {
        const std::uint32_t target = build(child, next);
        nodes_[node].free.push_back(target);
      }
      return node;
    }
    case ExprKind::kRepeat:
      return build_repeat(expr, next);
    case ExprKind::kRule: {
      const ExprId body = grammar_.rule(expr.rule).body;
      return measure_.inlined(expr.rule) ? build(body, next) : call(units_.of_expr(body), next);
    }
    case ExprKind::kGraph:
      return build_graph(expr, next);
    case ExprKind::kWithout:
    case ExprKind::kUntil:
      break;
  }
  return build_words(expr, next);
}

// What may begin a unit: rules and choices are taken in until something is read. Without left recursion that comes to an end.
std::uint32_t NfaBuilder::build_branch(ExprId id, std::uint32_t next) {
  while (grammar_.expr(id).kind == ExprKind::kRule) id = grammar_.rule(grammar_.expr(id).rule).body;
  if (grammar_.expr(id).kind != ExprKind::kChoice) return build(id, next);
  const std::uint64_t key = std::uint64_t{id} << 32 | next;
  if (const auto it = built_.find(key); it != built_.end()) return it->second;
  const std::uint32_t node = add();
  if (++depth_ > kMaxDepth) overflowed_ = true;
  for (const ExprId child : grammar_.expr(id).children) {
    if (overflowed_) return 0;
    const std::uint32_t target = build_branch(child, next);
    nodes_[node].free.push_back(target);
  }
  --depth_;
  built_.emplace(key, node);
  return node;
}

bool NfaBuilder::is_large_choice(const Expr& expr) const {
  const auto is_call = [&](ExprId child) {
    return grammar_.expr(child).kind == ExprKind::kRule && !measure_.inlined(grammar_.expr(child).rule);
  };
  return expr.kind == ExprKind::kChoice && std::count_if(expr.children.begin(), expr.children.end(), is_call) > kFewBranches;
}

std::uint32_t NfaBuilder::call(std::uint32_t unit, std::uint32_t next) {
  const std::uint32_t node = add();
  nodes_[node].calls.push_back({unit, next});
  return node;
}

std::uint32_t NfaBuilder::build_bytes(const std::string& bytes, std::uint32_t next) {
  for (auto c = bytes.rbegin(); c != bytes.rend(); ++c) {
    const std::uint32_t node = add();
    const auto byte = static_cast<std::uint8_t>(*c);
    nodes_[node].bytes.push_back({byte, byte, next});
    next = node;
  }
  return next;
}

// Encodings that end alike share their tails: most of a large set needs three nodes besides those of its first bytes.
std::uint32_t NfaBuilder::build_chars(const CodePointSet& chars, std::uint32_t next) {
  std::map<std::tuple<std::uint8_t, std::uint8_t, std::uint32_t>, std::uint32_t> tails;
  const std::uint32_t node = add();
  for (const ByteRanges& ranges : utf8_ranges(chars)) {
    std::uint32_t target = next;
    for (std::size_t i = ranges.size() - 1; i > 0; --i) {
      const auto [it, fresh] = tails.try_emplace({ranges[i].first, ranges[i].last, target}, 0);
      if (fresh) {
        it->second = add();
        nodes_[it->second].bytes.push_back({ranges[i].first, ranges[i].last, target});
      }
      target = it->second;
    }
    nodes_[node].bytes.push_back({ranges[0].first, ranges[0].last, target});
  }
  return node;
}

std::uint32_t NfaBuilder::build_repeat(const Expr& expr, std::uint32_t next) {
  const ExprId child = expr.children.front();
  const bool bounded = expr.max != kUnbounded;
  const std::uint32_t times = bounded ? expr.max : expr.min;
  const std::uint64_t weight = std::uint64_t{measure_.weight(child)} * times;
  const bool nullable = measure_.nullable(child);
  if (times > 4 && weight > kUnrollWeight && !nullable) return call(units_.of_repeat(child, expr.min, expr.max), next);
  if (nullable && weight > kUnrollNullable) {  // its empty matches cannot be counted
    overflowed_ = true;
    return 0;
  }

  std::uint32_t after = next;
  if (!bounded) {
    after = add();
    const std::uint32_t again = build(child, after);
    nodes_[after].free = {again, next};
  }
  for (std::uint32_t i = expr.min; bounded && i < expr.max; ++i) {
    const std::uint32_t again = build(child, after);
    const std::uint32_t node = add();
    nodes_[node].free = {again, next};
    after = node;
  }
  for (std::uint32_t i = 0; i < expr.min; ++i) after = build(child, after);
  return after;
}

std::uint32_t NfaBuilder::build_graph(const Expr& expr, std::uint32_t next) {
  std::map<std::uint32_t, std::uint32_t> nodes;  // by state
  const auto node_of = [&](std::uint32_t state) {
    const auto [it, fresh] = nodes.try_emplace(state, 0);
    if (fresh) it->second = add();
    return it->second;
  };
  const std::uint32_t start = node_of(0);
  for (const std::uint32_t state : expr.accepting) nodes_[node_of(state)].free.push_back(next);
  for (const GraphEdge& edge : expr.edges) {
    const std::uint32_t target = build(edge.label, node_of(edge.to));
    nodes_[node_of(edge.from)].free.push_back(target);
  }
  return start;
}

// Knuth, Morris and Pratt's automaton: node i has read the first i bytes of the trigger. `without`: the text may end in all of them, and
// never gets to the whole trigger.
std::uint32_t NfaBuilder::build_words(const Expr& expr, std::uint32_t next) {
  const WordFinder finder(expr.words);
  const bool without = expr.kind == ExprKind::kWithout;
  std::vector<std::uint32_t> node(finder.size());
  for (std::size_t at = 0; at < node.size(); ++at) node[at] = finder.is_end(at) ? next : add();
  const std::uint32_t first = add();  // as long as nothing but white space has been read
  if (overflowed_) return 0;
  const auto is_space = [](std::uint8_t byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; };
  for (std::size_t at = 0; at < node.size(); ++at) {
    if (finder.is_end(at)) continue;
    if (without && !finder.is_within_name(at)) nodes_[node[at]].free.push_back(next);
    for (unsigned value = 0; value <= 0xFF; ++value) {
      const auto byte = static_cast<std::uint8_t>(value);
      const std::size_t to = finder.after(at, byte);
      if (to == WordFinder::kNowhere || (without && finder.is_end(to))) continue;
      append_byte(nodes_[node[at]].bytes, byte, node[to]);
      if (at == 0 && expr.bytes.find(static_cast<char>(byte)) == std::string::npos)
        append_byte(nodes_[first].bytes, byte, to == 0 && is_space(byte) ? first : node[to]);
    }
  }
  if (without) nodes_[first].free.push_back(next);
  return expr.bytes.empty() ? node.front() : first;
}

}  // namespace braid::grammar
