#include "net/ollama/shown_model.h"

#include "net/json/write.h"
#include "net/json/write_value.h"
#include "net/ollama/model_entry.h"
#include "net/ollama/timestamp.h"

#include <fmt/format.h>
#include <string_view>

namespace braid::net::ollama {
namespace {

std::string value_text(const Value& value) {
  if (const auto* text = value.get_if<std::string>())
    return text->find_first_of(" \t\n\"") != std::string::npos || text->empty() ? json::quoted(*text) : *text;
  std::string out;
  json::append_value(out, value);
  return out;
}

std::string in_quotes(std::string_view text) {
  return text.find('\n') == std::string_view::npos && text.find('"') == std::string_view::npos ? fmt::format("\"{}\"", text)
                                                                                               : fmt::format("\"\"\"{}\"\"\"", text);
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  fmt::format_to(std::back_inserter(out), "{}\"{}\":", out.size() > 1 ? "," : "", name);
  json::append_lossy_string(out, text);
}

std::string_view member(const Value& message, std::string_view name) {
  const Value* value = message.find(name);
  const auto* text = value != nullptr ? value->get_if<std::string>() : nullptr;
  return text != nullptr ? std::string_view(*text) : std::string_view();
}

}  // namespace

std::string parameter_lines(const ValueDict& parameters, std::string_view before) {
  std::string lines;
  const auto add = [&](const std::string& name, const Value& value) {
    lines += fmt::format("{}{}{} {}", lines.empty() ? "" : "\n", before, name, value_text(value));
  };
  for (const auto& [name, value] : parameters) {
    const auto* list = value.get_if<ValueList>();
    if (list == nullptr) add(name, value);
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) add(name, (*list)[i]);
  }
  return lines;
}

std::string modelfile_of(const ModelDetails& details) {
  const ModelSettings& settings = details.settings;
  std::string file = fmt::format("# To make a model of your own from this one, change what follows and run `braid create -f`.\nFROM {}\n",
                                 details.model.name);
  if (!settings.template_text.empty()) file += fmt::format("TEMPLATE {}\n", in_quotes(settings.template_text));
  if (!settings.system.empty()) file += fmt::format("SYSTEM {}\n", in_quotes(settings.system));
  if (!settings.parameters.empty()) file += parameter_lines(settings.parameters, "PARAMETER ") + "\n";
  for (const Value& message : settings.messages)
    file += fmt::format("MESSAGE {} {}\n", member(message, "role"), in_quotes(member(message, "content")));
  for (const std::string& licence : settings.licences) file += fmt::format("LICENSE {}\n", in_quotes(licence));
  return file;
}

std::string shown_model(const ModelDetails& details, bool verbose) {
  const ModelSettings& settings = details.settings;
  std::string out = "{";
  if (!settings.licences.empty()) append_member(out, "license", fmt::format("{}", fmt::join(settings.licences, "\n")));
  append_member(out, "modelfile", modelfile_of(details));
  append_member(out, "parameters", parameter_lines(settings.parameters));
  append_member(out, "template", settings.template_text.empty() ? details.weights_template : settings.template_text);
  if (!settings.system.empty()) append_member(out, "system", settings.system);
  out += ',';
  append_details(out, details.model.facts, details.model.parent);
  if (!settings.messages.empty()) {
    out += R"(,"messages":)";
    json::append_value(out, settings.messages);
  }
  ValueDict info = details.info;
  if (details.model.facts.format == "gguf") info.emplace_back("general.parameter_count", details.model.facts.parameters);
  out += R"(,"model_info":)";
  json::append_value(out, std::move(info));
  if (verbose) {
    out += R"(,"tensors":)";
    json::append_value(out, details.tensors);
  }
  out += R"(,"capabilities":[)";
  for (const std::string& able : details.model.facts.able) out += (out.ends_with('[') ? "" : ",") + json::quoted(able);
  return out + R"(],"modified_at":")" + timestamp(details.model.modified) + "\"}";
}

}  // namespace braid::net::ollama
