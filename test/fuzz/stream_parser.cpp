#include "fuzz/stream_parser.h"

#include "fuzz/require.h"
#include "net/generation/parser/answer_parser.h"
#include "net/json/parse.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace braid::test {
namespace {

using net::Delta;

// Each chooses another row of the syntax table, the empty one the generic form.
constexpr std::array<std::string_view, 14> kTemplates = {
    "<tool_call>",
    "<|python_tag|>",
    "[func_name1(",
    "[TOOL_CALLS]",
    "[TOOL_CALLS][ARGS]",
    "<function=",
    "<TOOLCALL>",
    "<｜tool▁call▁begin｜>",
    "<|tool_call|>",
    "<|tool_call_start|>",
    "<|tool_call_argument_begin|>",
    "",
    "<function= <parameter=",
    "<arg_key>",
};

net::AnswerSyntax syntax_of(unsigned char choice) {
  net::AnswerSyntax syntax;
  syntax.reasoning = {"<think>", "</think>"};
  syntax.begins_in_reasoning = (choice & 0x20U) != 0;
  syntax.single_call = (choice & 0x40U) != 0;
  syntax.functions = {"f", "get_weather"};
  if ((choice & 0x80U) == 0) syntax.calls = &net::call_syntax_of(kTemplates.at((choice & 0x1FU) % kTemplates.size()));
  return syntax;
}

std::vector<Delta> parse(const net::AnswerSyntax& syntax, std::string_view text, std::size_t piece) {
  net::AnswerParser parser(syntax, 1);
  std::vector<Delta> joined;
  std::vector<Delta> deltas;
  while (!text.empty() && !parser.ended()) {
    parser.feed(text.substr(0, piece), deltas);
    text.remove_prefix(std::min(piece, text.size()));
  }
  if (!parser.ended()) parser.finish(false, deltas);
  for (Delta& delta : deltas) append_joined(joined, std::move(delta));
  return joined;
}

bool equal(const Delta& a, const Delta& b) {
  if (a.index() != b.index()) return false;
  if (const auto* text = std::get_if<net::TextDelta>(&a)) return text->text == std::get<net::TextDelta>(b).text;
  if (const auto* reasoning = std::get_if<net::ReasoningDelta>(&a)) return reasoning->text == std::get<net::ReasoningDelta>(b).text;
  if (const auto* arguments = std::get_if<net::ToolCallArguments>(&a)) return arguments->text == std::get<net::ToolCallArguments>(b).text;
  const auto& first = std::get<net::ToolCallBegin>(a);
  const auto& second = std::get<net::ToolCallBegin>(b);
  return first.index == second.index && first.id == second.id && first.name == second.name;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The reader of requests stops at depth, at numbers that no double holds, and at bytes that are not UTF-8, which a decoder never
// gives.
bool is_beyond_the_reader(const std::string& json) {
  std::size_t digits = 0;
  for (const char c : json) {
    if (digits > 15 || (digits > 0 && (c == 'e' || c == 'E'))) return true;
    digits = is_digit(c) ? digits + 1 : 0;
  }
  const auto nesting = std::count_if(json.begin(), json.end(), [](char c) { return c == '{' || c == '['; });
  const bool ascii = std::all_of(json.begin(), json.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return nesting > 100 || !ascii || json.find("\\u") != std::string::npos || json.size() > 200;
}

void check(const std::vector<Delta>& deltas) {
  std::uint32_t calls = 0;
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    if (const auto* begin = std::get_if<net::ToolCallBegin>(&deltas[i])) {
      require(begin->index == calls++ && !begin->name.empty() && !begin->id.empty());
      require(i + 1 < deltas.size() && std::holds_alternative<net::ToolCallArguments>(deltas[i + 1]));
    }
    const auto* arguments = std::get_if<net::ToolCallArguments>(&deltas[i]);
    if (arguments == nullptr) continue;
    require(calls > 0 && arguments->index == calls - 1);
    std::string json = arguments->text;
    if (is_beyond_the_reader(json)) continue;
    const Result<Value> value = net::json::parse(json);
    require(value && value->get_if<ValueDict>() != nullptr);
  }
}

}  // namespace

void fuzz_stream_parser(std::string_view bytes) {
  if (bytes.size() < 3) return;
  const net::AnswerSyntax syntax = syntax_of(static_cast<unsigned char>(bytes[0]));
  const std::size_t piece = 1 + static_cast<unsigned char>(bytes[1]) % 16;
  bytes.remove_prefix(2);
  const std::vector<Delta> whole = parse(syntax, bytes, bytes.size());
  const std::vector<Delta> cut = parse(syntax, bytes, piece);
  require(std::equal(whole.begin(), whole.end(), cut.begin(), cut.end(), equal));
  check(whole);
}

}  // namespace braid::test
