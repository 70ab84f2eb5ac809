#include "text/go_template/chat.h"

#include "text/go_template/functions.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace braid::text::go {
namespace {

// Of a content in parts the texts.
std::string words_of(const Value* content) {
  if (content == nullptr) return "";
  const auto* parts = content->get_if<ValueList>();
  if (parts == nullptr) return text_of(*content);
  std::string words;
  for (const Value& part : *parts)
    if (const Value* text = part.find("text")) words += text_of(*text);
  return words;
}

std::string role_of(const Value& message) {
  const Value* role = message.find("role");
  const std::string name = role != nullptr ? text_of(*role) : "";
  return name == "developer" ? "system" : name;
}

// With Ollama's names for what others call reasoning_content and name.
ValueDict renamed(const Value& message) {
  ValueDict own{{"role", role_of(message)}, {"content", words_of(message.find("content"))}};
  if (const auto* members = message.get_if<ValueDict>())
    for (const auto& [name, value] : *members) {
      if (name == "role" || name == "content") continue;
      own.emplace_back(name == "reasoning_content" ? "thinking" : name == "name" ? "tool_name" : name, value);
    }
  return own;
}

// Neighbours of one role become one message, but for tools' answers and calls.
ValueList joined(const ValueList& messages) {
  ValueList all;
  for (const Value& message : messages) {
    ValueDict own = renamed(message);
    ValueDict* const last = all.empty() ? nullptr : all.back().get_if<ValueDict>();
    const bool is_plain = find_member(own, "tool_calls") == nullptr && own.front().second != Value("tool");
    if (last != nullptr && is_plain && last->front().second == own.front().second && find_member(*last, "tool_calls") == nullptr) {
      (*last)[1].second = text_of((*last)[1].second) + "\n\n" + text_of(own[1].second);
    } else {
      all.emplace_back(std::move(own));
    }
  }
  return all;
}

std::string system_of(const ValueList& messages) {
  std::string system;
  for (const Value& message : messages)
    if (role_of(message) == "system") system += (system.empty() ? "" : "\n\n") + words_of(message.find("content"));
  return system;
}

// What the conversation itself is called.
bool is_of_chat(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {"Messages", "Tools", "System", "Prompt", "Response"};
  return std::ranges::find(kNames, name) != kNames.end();
}

// "enable_thinking" and "reasoning_effort" are what requests say of it.
void add_thinking(const Value& kwargs, ValueDict& root) {
  const Value* thinks = kwargs.find("enable_thinking");
  const Value* effort = kwargs.find("reasoning_effort");
  const bool is_set = (thinks != nullptr && !thinks->is_null()) || (effort != nullptr && !effort->is_null());
  root.emplace_back("Think", thinks != nullptr && !thinks->is_null() ? is_true(Term(*thinks)) : effort != nullptr && !effort->is_null());
  root.emplace_back("ThinkLevel", effort != nullptr ? text_of(*effort) : "");
  root.emplace_back("IsThinkSet", is_set);
}

}  // namespace

bool is_go_template(std::string_view source) {
  if (source.find("{%") != std::string_view::npos || source.find("{#") != std::string_view::npos) return false;
  constexpr std::string_view kBlank = " \t\r\n-";
  for (std::size_t at = source.find("{{"); at != std::string_view::npos; at = source.find("{{", at + 2)) {
    const std::size_t begin = source.find_first_not_of(kBlank, at + 2);
    if (begin == std::string_view::npos) break;
    const std::string_view action = source.substr(begin);
    if (action.starts_with('.') || action.starts_with('$') || action.starts_with("/*")) return true;
    for (const std::string_view keyword :
         {"if ", "range ", "with ", "end", "else", "json ", "index ", "currentDate", "define \"", "template \"", "block \""})
      if (action.starts_with(keyword)) return true;
  }
  return false;
}

ChatProgram::ChatProgram(Program program) : program_(std::move(program)), ranges_(program_.mentions("Messages")) {
  if (!ranges_ && !program_.mentions("Response")) program_.append_action("Response");
}

Result<ChatProgram> ChatProgram::parse(std::string_view source) {
  Result<Program> program = Program::parse(source);
  if (!program) return program.error();
  return ChatProgram(std::move(*program));
}

Result<std::string> ChatProgram::render(const ChatPrompt& prompt) const {
  const auto* messages = prompt.messages.get_if<ValueList>();
  const ValueList none;
  ValueDict root;
  if (const auto* kwargs = prompt.kwargs.get_if<ValueDict>())
    std::ranges::copy_if(*kwargs, std::back_inserter(root), [](const auto& member) { return !is_of_chat(member.first); });
  add_thinking(prompt.kwargs, root);
  root.emplace_back("Tools", prompt.tools);
  const ValueList all = joined(messages != nullptr ? *messages : none);
  if (!ranges_) return render_turns(std::move(root), all);
  root.emplace_back("System", system_of(all));
  root.emplace_back("Messages", all);
  root.emplace_back("Response", "");
  return program_.execute(Value(std::move(root)));
}

Result<std::string> ChatProgram::render_turns(ValueDict root, const ValueList& messages) const {
  std::string out;
  std::string system;
  std::string question;
  std::string answer;
  const auto write = [&](bool is_last) -> Result<void> {
    ValueDict turn = root;
    turn.emplace_back("System", std::exchange(system, {}));
    turn.emplace_back("Prompt", std::exchange(question, {}));
    turn.emplace_back("Response", std::exchange(answer, {}));
    const Result<std::string> written =
        is_last ? program_.execute_up_to(Value(std::move(turn)), "Response") : program_.execute(Value(std::move(turn)));
    if (!written) return written.error();
    out += *written;
    return {};
  };
  for (const Value& message : messages) {
    const std::string role = role_of(message);
    std::string words = words_of(message.find("content"));
    const bool begins = role == "system" ? !question.empty() || !answer.empty() : role == "user" && !answer.empty();
    if (begins)
      if (const Result<void> written = write(false); !written) return written.error();
    if (role == "system") system = std::move(words);
    if (role == "user" || role == "tool") question = std::move(words);
    if (role == "assistant") answer = std::move(words);
  }
  const Result<void> written = write(true);
  if (!written) return written.error();
  return out;
}

}  // namespace braid::text::go
