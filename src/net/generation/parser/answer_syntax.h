// How a model writes its reasoning and its tool calls, and what of that one answer is read for.
#pragma once

#include "braid/generation_request.h"
#include "braid/text_codec.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net {

struct ReasoningTags {
  std::string open;   // "<think>"
  std::string close;  // "</think>"
};

// Any number of calls: begin, call, end, begin, call, end …
struct CallSyntax {
  enum class Form : std::uint8_t {
    kJson,      // {"name": …, "arguments": {…}}; "parameters" serves as well, and several may stand in a list
    kNamed,     // NAME name_end {…}, or tags for the arguments
    kPythonic,  // [NAME(key=value, …), …]
  };

  Form form = Form::kJson;
  std::vector<std::string> begin = {};      // any of these; the first where we write one
  bool bare = false;                        // a call may also begin the text without one; then only declared functions count
  std::string fence = {};                   // that one of `begin` behind which an answer may stand as well as a call
  bool list = false;                        // written as [{…}, {…}] between one begin and one end, else each between its own
  std::string arguments_key = "arguments";  // as written; read is "parameters" as well
  // kNamed: what separates name and arguments, any of these; the first where we write one. White space around it is ignored.
  std::vector<std::string> name_end = {};
  std::vector<std::string> end = {};  // passed over behind a call; the first where we write one
  bool short_ids = false;             // nine letters and digits, which Mistral's templates insist on
};

// Of the template families that are known; the last one for all others: bare JSON.
const CallSyntax& call_syntax_of(std::string_view chat_template);

// What one choice's parser needs to know.
struct AnswerSyntax {
  ReasoningTags reasoning;                                          // empty: the model has none
  bool reasoning_anywhere = false;                                  // else it counts at the beginning of an answer only
  std::vector<std::string> passed_over;                             // markers without meaning, wherever they stand
  bool begins_in_reasoning = false;                                 // the rendered prompt ends with the opening tag
  const CallSyntax* calls = nullptr;                                // null: no tools may be called, and what looks like a call is text
  std::vector<std::string> functions;                               // the declared names
  std::vector<std::pair<std::string, std::string>> texts;           // functions and those of their arguments that are declared as strings
  std::vector<std::pair<std::string, std::string>> optional_texts;  // or as strings or null
  bool single_call = false;                                         // the answer ends with its first call
  std::vector<std::pair<TokenId, std::string>> control_markers;     // markers that are control tokens, which otherwise decode to nothing
};

// Sets the reasoning members for an answer to `rendered`: tags that stand in the template, or whose end is one token.
void find_reasoning(AnswerSyntax& syntax, const TextCodec& codec, std::string_view chat_template, std::string_view rendered);

// Once everything else is set: control_markers, and what is passed over around calls.
void find_control_markers(AnswerSyntax& syntax, const TextCodec& codec);

}  // namespace braid::net
