#include "net/adapters/sources.h"

#include "net/adapters/facts.h"
#include "net/json/fields.h"
#include "net/json/parse.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <system_error>
#include <utility>

namespace braid::net::adapters {
namespace {

namespace fs = std::filesystem;

// The members of a body; the first error counts.
class Members {
 public:
  explicit Members(Value document) : document_(std::move(document)) {}

  std::optional<Error> error;

  std::string text(std::string_view key, bool required) {
    const Value* value = find(key);
    if (value == nullptr) {
      if (required && !error) error = invalid_argument(fmt::format("'{}' is missing", key), std::string(key));
      return {};
    }
    return take(json::read_string(*value, std::string(key)));
  }
  bool flag(std::string_view key) {
    const Value* value = find(key);
    return value != nullptr && take(json::read_bool(*value, std::string(key)));
  }
  void refuse_others(std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : *document_.get_if<ValueDict>())
      if (!error && std::ranges::find(known, key) == known.end()) error = invalid_argument(fmt::format("'{}' is not known here", key), key);
  }

 private:
  const Value* find(std::string_view key) const {
    const Value* value = document_.find(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  template <class T>
  T take(Result<T> read) {
    if (read) return std::move(*read);
    if (!error) error = read.error();
    return {};
  }

  Value document_;
};

bool lies_in(const fs::path& path, const fs::path& folder) {
  const auto end = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first;
  return end == folder.end();
}

// Relative ones are looked for in the first folder.
Result<std::string> allowed(const std::string& asked, const ServerOptions& options, const char* field) {
  if (options.adapter_dirs.empty())
    return Error{ErrorCode::kForbidden, "this server loads no adapters that requests name: it was started without --adapter-dir", field};
  std::error_code failed;
  const fs::path path = fs::weakly_canonical(fs::path(options.adapter_dirs.front()) / asked, failed);
  for (const std::string& folder : options.adapter_dirs) {
    std::error_code unknown;
    const fs::path own = fs::canonical(folder, unknown);
    if (!failed && !unknown && path != own && lies_in(path, own)) return path.string();
  }
  return Error{ErrorCode::kForbidden, fmt::format("'{}' lies in no folder of --adapter-dir", asked), field};
}

Result<Wanted> with_path(Wanted wanted, const std::string& asked, const Service& service, const char* field) {
  Result<std::string> path = allowed(asked, service.options, field);
  if (!path) return path.error();
  wanted.source.path = std::move(*path);
  return wanted;
}

// Of a safetensors file what "__metadata__" says, whose values are texts.
Result<Value> metadata_of(const std::string& file) {
  std::uint64_t length = 0;
  if (file.size() >= sizeof length) std::memcpy(&length, file.data(), sizeof length);
  if (length == 0 || length > file.size() - sizeof length) return invalid_argument("the body is neither an object nor a safetensors file");
  std::string header = file.substr(sizeof length, length);
  const Result<Value> document = json::parse_object(header);
  if (!document) return document.error();
  const Value* metadata = document->find("__metadata__");
  return metadata != nullptr ? *metadata : Value(ValueDict());
}

Result<Wanted> read_file_update(std::string& body) {
  Result<Value> metadata = metadata_of(body);
  if (!metadata) return metadata.error();
  if (metadata->get_if<ValueDict>() == nullptr) return invalid_argument("'__metadata__' is no object", "__metadata__");
  Members members(std::move(*metadata));
  Wanted wanted{.model = members.text("model", false), .name = members.text("adapter", true), .source = {}, .replace = true};
  const std::string partial = members.text("partial", false);
  if (!members.error && !partial.empty() && partial != "true" && partial != "false")
    members.error = invalid_argument(fmt::format("'partial' is \"{}\", expected \"true\" or \"false\"", partial), "partial");
  if (members.error) return *members.error;
  wanted.source.partial = partial == "true";
  wanted.source.tensors = std::move(body);
  return wanted;
}

bool is_object(const std::string& body) {
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  return first == std::string::npos || body[first] == '{' || body[first] == '[';
}

// Of the model of which one of that name is loaded.
Result<Wanted> of_loaded(Wanted wanted, const Service& service) {
  const std::string full = wanted.model.empty() ? wanted.name : fmt::format("{}:{}", wanted.model, wanted.name);
  const NamedAdapter found = find(service.status.models, full);
  if (found.base == nullptr) return Error{ErrorCode::kNotFound, fmt::format("the adapter '{}' is not loaded", full), "adapter"};
  wanted.model = found.base->id;
  wanted.name = found.facts.name;
  return wanted;
}

}  // namespace

Result<Wanted> read_load(std::string& body, const Service& service) {
  Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  Members members(std::move(*document));
  members.refuse_others({"name", "path", "model", "replace", "checksum"});
  Wanted wanted{
      .model = members.text("model", false), .name = members.text("name", true), .source = {}, .replace = members.flag("replace")};
  wanted.source.checksum = members.text("checksum", false);
  const std::string path = members.text("path", true);
  if (members.error) return *members.error;
  return with_path(std::move(wanted), path, service, "path");
}

Result<Wanted> read_vllm_load(std::string& body, const Service& service) {
  Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  Members members(std::move(*document));
  Wanted wanted{.model = members.text("base_model_name", false),
                .name = members.text("lora_name", true),
                .source = {},
                .replace = members.flag("load_inplace")};
  const std::string path = members.text("lora_path", true);
  if (members.error) return *members.error;
  return with_path(std::move(wanted), path, service, "lora_path");
}

Result<Wanted> read_update(std::string& body, const Service& service) {
  if (!is_object(body)) {
    Result<Wanted> wanted = read_file_update(body);
    return wanted ? of_loaded(std::move(*wanted), service) : wanted;
  }
  Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  Members members(std::move(*document));
  members.refuse_others({"adapter", "path", "model", "partial", "checksum"});
  Wanted wanted{.model = members.text("model", false), .name = members.text("adapter", true), .source = {}, .replace = true};
  wanted.source.partial = members.flag("partial");
  wanted.source.checksum = members.text("checksum", false);
  const std::string path = members.text("path", true);
  if (members.error) return *members.error;
  Result<Wanted> known = of_loaded(std::move(wanted), service);
  return known ? with_path(std::move(*known), path, service, "path") : known;
}

}  // namespace braid::net::adapters
