#include "net/anthropic/request.h"
#include "net/json/fields.h"
#include "net/wish/images.h"
#include "net/wish/seal.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>

namespace braid::net::anthropic {
namespace {

using json::at_index;
using json::at_key;

Error missing(const std::string& path) { return invalid_argument(fmt::format("'{}' is missing", path), path); }

Result<std::string> member_text(const Value& block, std::string_view name, const std::string& path) {
  const Value* member = block.find(name);
  const std::string member_path = at_key(path, name);
  if (member == nullptr) return missing(member_path);
  return json::read_string(*member, member_path);
}

const std::string* type_of(const Value& block) {
  const Value* type = block.find("type");
  return type != nullptr ? type->get_if<std::string>() : nullptr;
}

// The text of a block that holds one in another form; nullopt: it does not.
std::optional<std::string> document_text(const Value& block) {
  const std::string* type = type_of(block);
  const Value* source = block.find(type != nullptr && *type == "document" ? "source" : "content");
  if (type == nullptr || source == nullptr) return std::nullopt;
  if (*type == "compaction")
    if (const auto* summary = source->get_if<std::string>()) return *summary;
  const Value* data =
      *type == "document" && source->find("type") != nullptr && *source->find("type") == Value("text") ? source->find("data") : nullptr;
  if (const auto* text = data != nullptr ? data->get_if<std::string>() : nullptr) return *text;
  if (*type != "search_result") return std::nullopt;
  Result<std::string> text = block_text(*source, "content");
  if (!text) return std::nullopt;
  const Value* title = block.find("title");
  const auto* title_text = title != nullptr ? title->get_if<std::string>() : nullptr;
  return title_text != nullptr ? *title_text + "\n" + *text : std::move(*text);
}

Error unsupported(const std::string& type, const std::string& path) {
  return invalid_argument(fmt::format("'{}' is a block of type '{}', which is not supported here", path, type), at_key(path, "type"));
}

// Texts of blocks, joined by newlines, and images between them.
struct Words {
  std::string text = {};  // behind the last image
  ValueList parts = {};   // all before

  void append_text(const std::string& piece) {
    if (!text.empty()) text += '\n';
    text += piece;
  }
  void append_image(Value part) {
    end_text();
    parts.push_back(std::move(part));
  }
  bool empty() const { return text.empty() && parts.empty(); }
  // Of a message: text, or parts where there are images.
  Value take_content() {
    if (parts.empty()) return Value(std::move(text));
    end_text();
    return Value(std::move(parts));
  }

 private:
  void end_text() {
    if (!text.empty()) parts.emplace_back(ValueDict{{"type", "text"}, {"text", std::move(text)}});
    text.clear();
  }
};

// The image of a block, given as base64 or by its address.
Result<Value> image_of(const Value& block, const std::string& path) {
  const Value* source = block.find("source");
  const std::string source_path = at_key(path, "source");
  if (source == nullptr) return missing(source_path);
  const Result<std::string> type = member_text(*source, "type", source_path);
  if (!type) return type.error();
  const bool is_base64 = *type == "base64";
  if (!is_base64 && *type != "url")
    return invalid_argument(fmt::format("'{}' is '{}', not 'base64' or 'url'", at_key(source_path, "type"), *type),
                            at_key(source_path, "type"));
  const char* name = is_base64 ? "data" : "url";
  Result<std::string> text = member_text(*source, name, source_path);
  if (!text) return text.error();
  if (is_base64) return wish::base64_image_part(std::move(*text), at_key(source_path, name));
  return wish::image_part(std::move(*text), Value(), at_key(source_path, name));
}

// The blocks of one message, gathered by what chat makes of them.
struct Gathered {
  Gleaned& gleaned;
  Words words = {};
  std::string reasoning = {};
  ValueList calls = {};
  ValueList results = {};  // chat messages of their own
  bool marked = false;     // some block is where the client wants its prompt cached
};

Result<void> gather_call(Gathered& gathered, const Value& block, const std::string& path) {
  Result<std::string> id = member_text(block, "id", path);
  if (!id) return id.error();
  Result<std::string> name = member_text(block, "name", path);
  if (!name) return name.error();
  const Value* input = block.find("input");
  const std::string input_path = at_key(path, "input");
  if (input == nullptr) return missing(input_path);
  if (input->get_if<ValueDict>() == nullptr) return json::wrong_type(input_path, "an object", *input);
  ValueDict function{{"name", std::move(*name)}, {"arguments", *input}};
  gathered.calls.emplace_back(ValueDict{{"id", std::move(*id)}, {"type", "function"}, {"function", std::move(function)}});
  return {};
}

// What a tool gave back; where that is neither text nor an image, the model is told so.
Result<Value> result_content(Gathered& gathered, const Value& content, const std::string& path) {
  const auto* blocks = content.get_if<ValueList>();
  if (blocks == nullptr) {
    Result<std::string> whole = block_text(content, path);
    return whole ? Result<Value>(std::move(*whole)) : whole.error();
  }
  Words words;
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    const Value& block = (*blocks)[i];
    const std::string block_path = at_index(path, i);
    if (block.get_if<ValueDict>() == nullptr) return json::wrong_type(block_path, "an object", block);
    const Result<std::string> type = member_text(block, "type", block_path);
    if (!type) return type.error();
    std::string text;
    if (*type == "image") {
      Result<Value> image = image_of(block, block_path);
      if (!image) return image;
      words.append_image(std::move(*image));
      continue;
    }
    if (*type == "tool_reference") {
      const Result<std::string> name = member_text(block, "tool_name", block_path);
      if (!name) return name.error();
      gathered.gleaned.referenced_tools.insert(*name);
      text = fmt::format("The tool {} can be called now.", *name);
    } else if (*type == "text") {
      Result<std::string> own = member_text(block, "text", block_path);
      if (!own) return own.error();
      text = std::move(*own);
    } else if (std::optional<std::string> document = document_text(block)) {
      text = std::move(*document);
    } else {
      text = fmt::format("(a {} that cannot be shown here)", *type);
    }
    words.append_text(text);
  }
  return words.take_content();
}

Result<void> gather_result(Gathered& gathered, const Value& block, const std::string& path) {
  Result<std::string> id = member_text(block, "tool_use_id", path);
  if (!id) return id.error();
  Value text = "";
  if (const Value* content = block.find("content"); content != nullptr && !content->is_null()) {
    Result<Value> read = result_content(gathered, *content, at_key(path, "content"));
    if (!read) return read.error();
    text = std::move(*read);
  }
  gathered.results.emplace_back(ValueDict{{"role", "tool"}, {"tool_call_id", std::move(*id)}, {"content", std::move(text)}});
  return {};
}

// Those that this server can read, in whose message they do not belong, or that hold something the answer would have to be about.
bool is_essential(const std::string& type) {
  constexpr std::array<std::string_view, 6> kTypes = {"document", "audio", "tool_use", "tool_result", "thinking", "text"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

Result<void> gather_thought(Gathered& gathered, const Value& block, const std::string& path) {
  const Result<std::string> thinking = member_text(block, "thinking", path);
  if (!thinking) return thinking.error();
  const Value* seal = thinking->empty() ? block.find("signature") : nullptr;
  const auto* text = seal != nullptr ? seal->get_if<std::string>() : nullptr;
  gathered.reasoning += text != nullptr ? wish::opened(*text).value_or("") : *thinking;
  return {};
}

Result<void> gather(Gathered& gathered, const Value& block, bool assistant, const std::string& path) {
  if (block.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", block);
  const Result<std::string> type = member_text(block, "type", path);
  if (!type) return type.error();
  if (*type == "text") {
    const Result<std::string> text = member_text(block, "text", path);
    if (text) gathered.words.append_text(*text);
    return text ? Result<void>() : text.error();
  }
  if (*type == "image") {
    Result<Value> image = image_of(block, path);
    if (image) gathered.words.append_image(std::move(*image));
    return image ? Result<void>() : image.error();
  }
  if (assistant && *type == "thinking") return gather_thought(gathered, block, path);
  if (assistant && *type == "tool_use") return gather_call(gathered, block, path);
  if (!assistant && *type == "tool_result") return gather_result(gathered, block, path);
  if (const std::optional<std::string> document = document_text(block)) {
    gathered.words.append_text(*document);
    return {};
  }
  if (is_essential(*type)) return unsupported(*type, path);
  gathered.gleaned.left_out.push_back(*type);  // such as what a provider's server ran, or thoughts that nobody but their author can read
  return {};
}

Result<Gathered> gather_content(const Value& content, bool assistant, const std::string& path, Gleaned& gleaned) {
  Gathered gathered{gleaned};
  if (const auto* text = content.get_if<std::string>()) {
    gathered.words.text = *text;
    return gathered;
  }
  const auto* blocks = content.get_if<ValueList>();
  if (blocks == nullptr) return json::wrong_type(path, "a string or an array of blocks", content);
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    const Result<void> read = gather(gathered, (*blocks)[i], assistant, at_index(path, i));
    if (!read) return read.error();
    gathered.marked |= is_marked((*blocks)[i]);
  }
  return gathered;
}

}  // namespace

Result<std::string> block_text(const Value& content, const std::string& path) {
  if (const auto* text = content.get_if<std::string>()) return *text;
  const auto* blocks = content.get_if<ValueList>();
  if (blocks == nullptr) return json::wrong_type(path, "a string or an array of blocks", content);
  std::string joined;
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    const std::string block_path = at_index(path, i);
    if ((*blocks)[i].get_if<ValueDict>() == nullptr) return json::wrong_type(block_path, "an object", (*blocks)[i]);
    const Result<std::string> type = member_text((*blocks)[i], "type", block_path);
    if (!type) return type.error();
    if (*type != "text") return unsupported(*type, block_path);
    const Result<std::string> text = member_text((*blocks)[i], "text", block_path);
    if (!text) return text;
    if (i > 0) joined += '\n';
    joined += *text;
  }
  return joined;
}

bool is_marked(const Value& block) {
  const Value* mark = block.get_if<ValueDict>() != nullptr ? block.find("cache_control") : nullptr;
  return mark != nullptr && !mark->is_null();
}

// Some versions of Claude Code put a line like a header's in front, with a value that changes from turn to turn: the prompt begins behind it.
std::string without_header_lines(std::string text) {
  while (text.starts_with("x-anthropic-")) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

Result<void> append_message(ValueList& chat, const Value& message, const std::string& path, Gleaned& gleaned) {
  if (message.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", message);
  const Result<std::string> role = member_text(message, "role", path);
  if (!role) return role.error();
  const bool assistant = *role == "assistant";
  if (!assistant && *role != "user" && *role != "system") {
    const std::string role_path = at_key(path, "role");
    return invalid_argument(fmt::format("'{}' is '{}', not 'user', 'assistant' or 'system'", role_path, *role), role_path);
  }
  const std::string content_path = at_key(path, "content");
  const Value* content = message.find("content");
  if (content == nullptr) return missing(content_path);
  Result<Gathered> gathered = gather_content(*content, assistant, content_path, gleaned);
  if (!gathered) return gathered.error();
  if (*role == "system") {
    if (gathered->words.parts.empty()) gathered->words.text = without_header_lines(std::move(gathered->words.text));
    if (gathered->words.empty()) return {};
  }
  const bool only_results = gathered->words.empty() && !gathered->results.empty();
  for (Value& result : gathered->results) chat.push_back(std::move(result));
  if (only_results) {
    if (gathered->marked) chat.back().get_if<ValueDict>()->emplace_back("cache_control", true);
    return {};
  }
  ValueDict entry{{"role", *role}, {"content", gathered->words.take_content()}};
  if (!gathered->reasoning.empty()) entry.emplace_back("reasoning_content", std::move(gathered->reasoning));
  if (!gathered->calls.empty()) entry.emplace_back("tool_calls", std::move(gathered->calls));
  if (gathered->marked) entry.emplace_back("cache_control", true);
  chat.emplace_back(std::move(entry));
  return {};
}

}  // namespace braid::net::anthropic
