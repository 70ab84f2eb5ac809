#include "app/chat/chat_session.h"

#include "app/chat/shown_files.h"
#include "app/commands/commands.h"
#include "braid/printable.h"
#include "net/json/parse.h"
#include "net/json/write_value.h"
#include "registry/durable_file.h"
#include "registry/model_ref.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::app {
namespace {

constexpr std::string_view kLongQuote = "\"\"\"";
constexpr std::size_t kMostChatBytes = std::size_t{64} << 20;

constexpr char kHelp[] =
    "  /set system TEXT          what the model is told first\n"
    "  /set parameter NAME VALUE such as temperature 0.5, top_k 40, num_predict 200, seed 1\n"
    "  /show info|system|parameters|messages\n"
    "  /save NAME, /load NAME    keep this chat, and go on with one\n"
    "  /save model NAME          make a model that begins with this chat\n"
    "  /load model NAME          go on with another model\n"
    "  /new                      start over\n"
    "  /bye                      leave; Ctrl-D too\n"
    "\"\"\" begins and ends a text of several lines. Ctrl-C stops an answer.\n"
    "A path of an image within a message shows it, where the model sees.\n";

// The first word, which is taken off.
std::string_view take_word(std::string_view& text) {
  const auto skip = [&text] { text.remove_prefix(std::min(text.find_first_not_of(' '), text.size())); };
  skip();
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  skip();
  return word;
}

Value chat_message(const char* role, const std::string& content) { return ValueDict{{"role", role}, {"content", content}}; }

std::string text_of(const Value& value) {
  std::string text;
  net::json::append_value(text, value);
  return text;
}

// A number or a truth value where it is one, else a text.
Value typed(std::string_view text) {
  std::string document(text);
  Result<Value> value = net::json::parse(document);
  if (value && (value->number() || value->get_if<bool>() != nullptr)) return std::move(*value);
  return std::string(text);
}

// Of "model NAME" the name; without one it is a chat's.
std::optional<std::string> named_model(std::string_view what) {
  if (take_word(what) != "model" || what.empty()) return std::nullopt;
  return std::string(what);
}

template <class T>
T member_or(const Value& document, std::string_view name, T otherwise) {
  const Value* value = document.find(name);
  const T* found = value != nullptr ? value->get_if<T>() : nullptr;
  return found != nullptr ? *found : std::move(otherwise);
}

}  // namespace

ChatSession::ChatSession(ChatPartner& partner, LineEditor& editor, ChatState state, std::string folder, ChatModels models)
    : partner_(partner), editor_(editor), state_(std::move(state)), folder_(std::move(folder)), models_(std::move(models)) {}

std::optional<std::string> ChatSession::run() {
  if (editor_.is_terminal())
    fmt::print("{}: type a message; Ctrl-C stops an answer, Ctrl-D leaves, /new starts over, /? tells more.\n", printable(partner_.name()));
  for (;;) {
    const std::optional<std::string> text = next_text();
    if (!text) break;
    if (text->empty()) continue;
    editor_.remember(*text);
    if (text->front() != '/' || begins_with_image(*text))
      answer(*text);
    else if (obey(*text) == Next::kEnd)
      break;
  }
  if (editor_.is_terminal()) fmt::print("\n");
  return next_;
}

// A line, or what stands between """ and """.
std::optional<std::string> ChatSession::next_text() {
  if (editor_.is_terminal()) fmt::print("\n");
  std::optional<std::string> line = editor_.line("> ");
  if (!line || !line->starts_with(kLongQuote)) return line;
  std::string text = line->substr(kLongQuote.size());
  while (text.find(kLongQuote) == std::string::npos) {
    const std::optional<std::string> more = editor_.line("... ");
    if (!more) return std::nullopt;
    text += '\n' + *more;
  }
  return text.substr(0, text.find(kLongQuote));
}

void ChatSession::answer(const std::string& text) {
  Result<Value> message = typed_message(text);
  if (!message) return static_cast<void>(report(message.error()));
  state_.messages.push_back(std::move(*message));
  const Result<std::string> said = partner_.answer(state_);
  if (said) return state_.messages.push_back(chat_message("assistant", *said));
  state_.messages.pop_back();
  report(said.error());
  if (said.error().code == ErrorCode::kContextLength) fmt::print(stderr, "braid: /new starts over\n");
}

ChatSession::Next ChatSession::obey(std::string_view command) {
  const std::string_view word = take_word(command);
  if (word == "/bye" || word == "/exit") return Next::kEnd;
  Result<void> done;
  if (word == "/new" || word == "/clear")
    state_.messages.clear();
  else if (word == "/set")
    done = set(command);
  else if (word == "/show")
    done = show(command);
  else if (word == "/save")
    done = save(command);
  else if (word == "/load")
    done = load(command);
  else if (word == "/?" || word == "/help")
    fmt::print("{}", kHelp);
  else
    done = invalid_argument(fmt::format("there is no command {}; /? tells which there are", word));
  if (!done) report(done.error());
  return next_ ? Next::kEnd : Next::kGoOn;
}

Result<void> ChatSession::set(std::string_view what) {
  const std::string_view name = take_word(what);
  if (name == "parameter") return set_parameter(what);
  if (name != "system") return invalid_argument("/set system TEXT, or /set parameter NAME VALUE");
  state_.system = what;
  return {};
}

Result<void> ChatSession::set_parameter(std::string_view what) {
  const std::string name(take_word(what));
  if (name.empty() || what.empty()) return invalid_argument("/set parameter NAME VALUE");
  const Value value = typed(what);
  if (const Result<void> checked = partner_.check_parameter(name, value); !checked) return checked;
  if (Value* known = find_member(state_.parameters, name); known != nullptr)
    *known = value;
  else
    state_.parameters.emplace_back(name, value);
  return {};
}

Result<void> ChatSession::show(std::string_view what) const {
  if (what == "info")
    fmt::print("{}, {} messages\n", printable(partner_.name()), state_.messages.size());
  else if (what == "system")
    fmt::print("{}\n", printable(state_.system, "\n\t"));
  else if (what == "parameters")
    for (const auto& [name, value] : state_.parameters) fmt::print("{} {}\n", printable(name), printable(text_of(value)));
  else if (what == "messages")
    for (const Value& one : state_.messages)
      fmt::print("{}: {}\n", member_or<std::string>(one, "role", ""), printable(member_or<std::string>(one, "content", ""), "\n\t"));
  else
    return invalid_argument("/show info, /show system, /show parameters or /show messages");
  return {};
}

Result<std::string> ChatSession::path_of(std::string_view name) const {
  if (folder_.empty()) return Error{ErrorCode::kIo, "there is no data folder for chats; name one with --data-dir", ""};
  if (!registry::is_name_part(name)) return invalid_argument(fmt::format("'{}' is no name: letters, digits, '_', '-' and '.'", name));
  return fmt::format("{}/chats/{}.json", folder_, name);
}

Result<void> ChatSession::save(std::string_view what) const {
  if (const auto model = named_model(what)) return models_.make(*model, state_);
  const Result<std::string> path = path_of(what);
  if (!path) return path.error();
  if (const Result<void> made = registry::make_folders(folder_ + "/chats"); !made) return made;
  const Value chat =
      ValueDict{{"model", partner_.name()}, {"system", state_.system}, {"parameters", state_.parameters}, {"messages", state_.messages}};
  return registry::write_durably(*path, text_of(chat));
}

Result<void> ChatSession::load(std::string_view what) {
  if (const auto model = named_model(what)) {
    if (const Result<void> known = models_.check(*model); !known) return known;
    next_ = *model;
    return {};
  }
  const Result<std::string> path = path_of(what);
  if (!path) return path.error();
  Result<std::string> text = registry::read_small_file(*path, kMostChatBytes);
  if (!text) return text.error();
  const Result<Value> chat = net::json::parse_object(*text);
  if (!chat) return Error{ErrorCode::kBadFile, fmt::format("{} is no chat", *path), ""};
  state_ = {member_or<std::string>(*chat, "system", ""), member_or<ValueDict>(*chat, "parameters", {}),
            member_or<ValueList>(*chat, "messages", {})};
  return {};
}

}  // namespace braid::app
