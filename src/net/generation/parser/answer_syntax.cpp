#include "net/generation/parser/answer_syntax.h"

#include <algorithm>
#include <array>

namespace braid::net {
namespace {

using Form = CallSyntax::Form;

struct Row {
  std::vector<std::string_view> evidence;  // all of it stands in the template
  CallSyntax syntax;
  std::vector<std::string> section = {};  // around all calls of an answer: passed over
};

// The first row that fits counts: what is most special stands first.
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
      {{"<|channel|>", "<|message|>"},  // gpt-oss
       {.form = Form::kNamed,
        .begin = {"<|channel|>commentary to=functions.", "to=functions."},
        .name_end = {"<|constrain|>json<|message|>", "json<|message|>", "<|message|>", "<|channel|>commentary <|constrain|>json<|message|>",
                     "<|channel|>commentary json<|message|>", "<|channel|>commentary<|message|>"},
        .end = {"<|call|>"}}},
      {{"<｜tool▁call▁begin｜>", "```json"},  // DeepSeek V3, R1
       {.form = Form::kNamed,
        .begin = {"<｜tool▁call▁begin｜>function<｜tool▁sep｜>"},
        .name_end = {"```json"},
        .end = {"```", "<｜tool▁call▁end｜>"}},
       {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}},
      {{"<｜tool▁call▁begin｜>"},  // DeepSeek V3.1
       {.form = Form::kNamed, .begin = {"<｜tool▁call▁begin｜>"}, .name_end = {"<｜tool▁sep｜>"}, .end = {"<｜tool▁call▁end｜>"}},
       {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"}},
      {{"<|tool_call_argument_begin|>"},  // Kimi
       {.form = Form::kNamed, .begin = {"<|tool_call_begin|>"}, .name_end = {"<|tool_call_argument_begin|>"}, .end = {"<|tool_call_end|>"}},
       {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"}},
      {{"[TOOL_CALLS]", "[ARGS]"},  // Mistral since 2025
       {.form = Form::kNamed, .begin = {"[TOOL_CALLS]"}, .name_end = {"[ARGS]"}, .short_ids = true}},
      {{"[TOOL_CALLS]"},  // and before
       {.form = Form::kNamed, .begin = {"[TOOL_CALLS]"}, .list = true, .name_end = {"[ARGS]"}, .short_ids = true}},
      {{"<|tool_call_start|>"},  // LFM
       {.form = Form::kPythonic, .begin = {"<|tool_call_start|>"}, .list = true, .end = {"<|tool_call_end|>"}}},
      {{"<|START_ACTION|>"}, {.begin = {"<|START_ACTION|>"}, .list = true, .end = {"<|END_ACTION|>"}}},  // Command R7B, Command A
      {{"<TOOLCALL>"}, {.begin = {"<TOOLCALL>"}, .list = true, .end = {"</TOOLCALL>"}}},                 // Nemotron
      {{"<function=", "<parameter="},                                                                    // Qwen3-Coder, Nemotron 3
       {.form = Form::kNamed, .begin = {"<function="}, .name_end = {">"}, .end = {"</function>"}},
       {"<tool_call>", "</tool_call>"}},
      {{"<arg_key>"},  // GLM
       {.form = Form::kNamed, .begin = {"<tool_call>"}, .name_end = {"\n"}, .end = {"</tool_call>"}}},
      {{"<tool_call>"}, {.begin = {"<tool_call>"}, .end = {"</tool_call>"}}},  // Hermes, Qwen, Granite 4
      {{"<function="},                                                         // Functionary, Llama 3.1
       {.form = Form::kNamed, .begin = {"<function="}, .name_end = {">"}, .end = {"</function>"}}},
      {{"<|tool_call|>"}, {.begin = {"<|tool_call|>"}, .list = true, .end = {"<|/tool_call|>"}}},  // Granite 3, Phi 4
      {{"[func_name1("},                                                                           // Llama 3.2, Llama 4
       {.form = Form::kPythonic, .begin = {"<|python_start|>"}, .bare = true, .end = {"<|python_end|>"}}},
      {{"<|python_tag|>"}, {.begin = {"<|python_tag|>"}, .bare = true, .arguments_key = "parameters"}},  // Llama 3
  };
  return kRows;
}

// Models that no template told how to call.
const CallSyntax& generic() {
  static const CallSyntax kGeneric = {.begin = {"<tool_call>", "```json"}, .bare = true, .fence = "```json", .end = {"</tool_call>"}};
  return kGeneric;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kReasoningTags = {{
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<seed:think>", "</seed:think>"},
    {"◁think▷", "◁/think▷"},
}};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

const CallSyntax& call_syntax_of(std::string_view chat_template) {
  for (const Row& row : rows()) {
    const auto found = [chat_template](std::string_view part) { return contains(chat_template, part); };
    if (std::all_of(row.evidence.begin(), row.evidence.end(), found)) return row.syntax;
  }
  return generic();
}

void set_harmony(AnswerSyntax& syntax) {
  syntax.reasoning = {"<|channel|>analysis<|message|>", "<|end|>"};
  syntax.reasoning_anywhere = true;
  syntax.passed_over = {"<|channel|>final<|message|>", "<|channel|>commentary<|message|>", "<|start|>assistant", "<|end|>", "<|return|>"};
}

void find_reasoning(AnswerSyntax& syntax, const TextCodec& codec, std::string_view chat_template, std::string_view rendered) {
  if (contains(chat_template, "<|channel|>") && contains(chat_template, "<|message|>")) return set_harmony(syntax);
  rendered = rendered.substr(0, rendered.find_last_not_of(" \n\r\t") + 1);
  for (const auto& [open, close] : kReasoningTags) {
    const auto tokens = codec.encode(close, {.add_special = false, .parse_special = true});
    if (!contains(chat_template, close) && (!tokens || tokens->size() != 1)) continue;
    syntax.reasoning = {std::string(open), std::string(close)};
    syntax.begins_in_reasoning = rendered.ends_with(open);
    return;
  }
}

void find_control_markers(AnswerSyntax& syntax, const TextCodec& codec) {
  for (const Row& row : rows())
    if (&row.syntax == syntax.calls) syntax.passed_over.insert(syntax.passed_over.end(), row.section.begin(), row.section.end());
  std::vector<std::string> markers = syntax.passed_over;
  markers.insert(markers.end(), {syntax.reasoning.open, syntax.reasoning.close});
  if (syntax.calls != nullptr) {
    markers.insert(markers.end(), syntax.calls->begin.begin(), syntax.calls->begin.end());
    markers.insert(markers.end(), syntax.calls->end.begin(), syntax.calls->end.end());
    markers.insert(markers.end(), syntax.calls->name_end.begin(), syntax.calls->name_end.end());
    if (syntax.calls->short_ids) markers.emplace_back("[CALL_ID]");
  }
  for (const std::string& marker : markers) {
    const auto tokens = codec.encode(marker, {.add_special = false, .parse_special = true});
    if (!tokens) continue;
    for (const TokenId token : *tokens) {
      if (codec.is_silent(token)) syntax.control_markers.emplace_back(token, codec.token_bytes(token));
    }
  }
}

}  // namespace braid::net
