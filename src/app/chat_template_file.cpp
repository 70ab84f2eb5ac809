#include "app/chat_template_file.h"

#include "app/whole_file.h"
#include "net/json/parse.h"
#include "text/common_templates.h"

#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

namespace braid::app {
namespace {

constexpr std::size_t kMaxTemplateBytes = std::size_t{64} << 20U;  // a tokenizer_config.json can list a whole vocabulary

Error bad(const std::string& path, const std::string& what) { return {ErrorCode::kBadFile, fmt::format("{}: {}", path, what), ""}; }

Result<std::string> read_text(const std::string& path) {
  std::optional<std::string> text = read_whole_file(path, kMaxTemplateBytes);
  if (!text) return Error{ErrorCode::kIo, fmt::format("{}: the chat template cannot be read", path), ""};
  if (text->empty()) return bad(path, "the chat template is empty");
  if (text->size() > kMaxTemplateBytes) return bad(path, "larger than 64 MiB: this is no chat template");
  return std::move(*text);
}

Result<std::vector<text::TemplateSource>> named_templates(const std::string& path, const ValueList& list) {
  std::vector<text::TemplateSource> sources;
  for (const Value& item : list) {
    const Value* name = item.find("name");
    const Value* text = item.find("template");
    const bool sound =
        name != nullptr && text != nullptr && name->get_if<std::string>() != nullptr && text->get_if<std::string>() != nullptr;
    if (!sound) return bad(path, "an item of 'chat_template' lacks its 'name' or its 'template'");
    sources.push_back({*name->get_if<std::string>(), *text->get_if<std::string>()});
  }
  if (sources.empty()) return bad(path, "'chat_template' is an empty list");
  return sources;
}

}  // namespace

Result<std::vector<text::TemplateSource>> read_chat_template_file(const std::string& path) {
  if (auto common = text::common_template(path)) return std::vector{std::move(*common)};
  Result<std::string> text = read_text(path);
  if (!text) return text.error();
  if (!path.ends_with(".json")) return std::vector{text::TemplateSource{"default", std::move(*text)}};
  const Result<Value> document = net::json::parse(*text);
  if (!document) return bad(path, document.error().message);
  const Value* found = document->find("chat_template");
  if (found == nullptr) return bad(path, "has no 'chat_template'");
  if (const auto* one = found->get_if<std::string>()) return std::vector{text::TemplateSource{"default", *one}};
  if (const auto* list = found->get_if<ValueList>()) return named_templates(path, *list);
  return bad(path, "'chat_template' is neither a text nor a list");
}

}  // namespace braid::app
