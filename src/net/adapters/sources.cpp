#include "net/adapters/sources.h"

#include "net/adapters/facts.h"
#include "net/json/parse.h"
#include "net/weights/sources.h"

#include <fmt/format.h>
#include <utility>

namespace braid::net::adapters {
namespace {

using weights::Members;

weights::Folders folders_of(const Service& service) {
  return {service.options.adapter_dirs, "--adapter-dir", service.options.changes != nullptr};
}

std::optional<UpdateMode> replacing(bool is_wanted) { return is_wanted ? std::optional(UpdateMode::kFinish) : std::nullopt; }

Result<Wanted> with_path(Wanted wanted, const std::string& asked, const Service& service, const char* field) {
  Result<std::string> path = weights::path_in(folders_of(service), asked, field);
  if (!path) return path.error();
  wanted.source.path = std::move(*path);
  return wanted;
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
  members.refuse_others({"name", "path", "registry", "model", "replace", "checksum"});
  Wanted wanted{.model = members.text("model", false),
                .name = members.text("name", true),
                .source = {},
                .replacing = replacing(members.flag("replace"))};
  wanted.source.checksum = members.text("checksum", false);
  wanted.stored = members.text("registry", false);
  const std::string path = members.text("path", wanted.stored.empty());
  if (members.error) return *members.error;
  if (!path.empty() && !wanted.stored.empty()) return invalid_argument("'path' and 'registry' are both there: which one?", "path");
  if (!wanted.stored.empty()) return wanted;
  return with_path(std::move(wanted), path, service, "path");
}

Result<Wanted> read_vllm_load(std::string& body, const Service& service) {
  Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  Members members(std::move(*document));
  Wanted wanted{.model = members.text("base_model_name", false),
                .name = members.text("lora_name", true),
                .source = {},
                .replacing = replacing(members.flag("load_inplace"))};
  const std::string path = members.text("lora_path", true);
  if (members.error) return *members.error;
  return with_path(std::move(wanted), path, service, "lora_path");
}

Result<Wanted> read_update(std::string& body, const Service& service) {
  Result<weights::Body> read = weights::read_body(body, folders_of(service));
  if (!read) return read.error();
  Members& members = read->members;
  if (read->source.tensors.empty()) members.refuse_others({"adapter", "model", "mode", "path", "shared_memory", "partial", "checksum"});
  Wanted wanted{.model = members.text("model", false), .name = members.text("adapter", true), .source = {}};
  wanted.replacing = weights::mode_of(members);
  if (members.error) return *members.error;
  wanted.source = std::move(read->source);
  return of_loaded(std::move(wanted), service);
}

}  // namespace braid::net::adapters
