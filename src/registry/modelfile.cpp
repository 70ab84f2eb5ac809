#include "registry/modelfile.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <utility>

namespace braid::registry {
namespace {

constexpr std::string_view kSpaces = " \t\r";
constexpr std::string_view kLongQuote = "\"\"\"";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// The first word, which is taken off the text.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_of(kSpaces), text.size());
  const std::string_view word = text.substr(0, end);
  text = trimmed(text.substr(end));
  return word;
}

std::string in_capitals(std::string_view word) {
  std::string large(word);
  for (char& c : large) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return large;
}

// A whole number, another number, a truth value, or a text.
Value typed(const std::string& text) {
  std::int64_t whole = 0;
  double real = 0.0;
  const char* const end = text.data() + text.size();
  if (const auto [at, wrong] = std::from_chars(text.data(), end, whole); wrong == std::errc() && at == end) return whole;
  if (const auto [at, wrong] = std::from_chars(text.data(), end, real); wrong == std::errc() && at == end) return real;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

class ModelfileReader {
 public:
  explicit ModelfileReader(std::string_view text) : rest_(text) {}

  Result<Modelfile> read() {
    while (!rest_.empty()) {
      std::string_view line = trimmed(take_line());
      if (line.empty() || line.starts_with('#')) continue;
      const int at = line_;
      const std::string instruction = in_capitals(take_word(line));
      if (const Result<void> done = apply(instruction, line); !done)
        return invalid_argument(fmt::format("line {} of the Modelfile: {}", at, done.error().message));
    }
    if (file_.from.empty()) return invalid_argument("the Modelfile has no FROM");
    return std::move(file_);
  }

 private:
  std::string_view take_line() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(rest_.size(), end + 1));
    ++line_;
    return line;
  }

  // What stands behind an instruction, without quotes; in long ones it goes on over lines.
  Result<std::string> text_of(std::string_view argument) {
    if (argument.starts_with(kLongQuote)) {
      std::string text(argument.substr(kLongQuote.size()));
      while (text.find(kLongQuote) == std::string::npos) {
        if (rest_.empty()) return invalid_argument("a text in \"\"\" does not end");
        text += '\n';
        text += take_line();
      }
      const std::size_t end = text.find(kLongQuote);
      if (!trimmed(std::string_view(text).substr(end + kLongQuote.size())).empty())
        return invalid_argument("something follows a text in \"\"\"");
      text.resize(end);
      return text;
    }
    if (argument.size() >= 2 && argument.front() == '"' && argument.back() == '"') argument = argument.substr(1, argument.size() - 2);
    if (argument.empty()) return invalid_argument("a value is missing");
    return std::string(argument);
  }

  Result<void> apply(const std::string& instruction, std::string_view argument) {
    ModelSettings& settings = file_.settings;
    std::string_view word;
    if (instruction == "PARAMETER" || instruction == "MESSAGE") word = take_word(argument);
    Result<std::string> text = text_of(argument);
    if (!text) return text.error();
    if (instruction == "FROM")
      file_.from.push_back(std::move(*text));
    else if (instruction == "ADAPTER")
      file_.adapters.push_back(std::move(*text));
    else if (instruction == "TEMPLATE")
      settings.template_text = std::move(*text);
    else if (instruction == "SYSTEM")
      settings.system = std::move(*text);
    else if (instruction == "LICENSE")
      settings.licences.push_back(std::move(*text));
    else if (instruction == "PARAMETER")
      return add_parameter(std::string(word), *text);
    else if (instruction == "MESSAGE")
      return add_message(std::string(word), std::move(*text));
    else
      return invalid_argument(fmt::format("'{}' is no instruction", instruction));
    return {};
  }

  Result<void> add_parameter(const std::string& name, const std::string& text) {
    ValueDict& parameters = file_.settings.parameters;
    Value* const known = find_member(parameters, name);
    if (name == "stop") {
      if (known == nullptr)
        parameters.emplace_back(name, ValueList{text});
      else
        known->get_if<ValueList>()->emplace_back(text);
      return {};
    }
    if (known != nullptr)
      *known = typed(text);
    else
      parameters.emplace_back(name, typed(text));
    return {};
  }

  Result<void> add_message(std::string role, std::string content) {
    if (role != "system" && role != "user" && role != "assistant")
      return invalid_argument(fmt::format("'{}' is no role: system, user or assistant", role));
    file_.settings.messages.emplace_back(ValueDict{{"role", std::move(role)}, {"content", std::move(content)}});
    return {};
  }

  std::string_view rest_;
  int line_ = 0;
  Modelfile file_;
};

}  // namespace

Result<Modelfile> parse_modelfile(std::string_view text) { return ModelfileReader(text).read(); }

}  // namespace braid::registry
