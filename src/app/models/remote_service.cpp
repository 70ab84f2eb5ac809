// Through a server, by its own routes.
#include "app/models/model_service.h"
#include "app/models/remote_call.h"
#include "registry/digest.h"

#include <fmt/format.h>
#include <utility>

namespace braid::app {
namespace {

std::uint64_t count(const Value& value, std::string_view name) {
  const Value* found = value.find(name);
  const auto* number = found != nullptr ? found->get_if<std::int64_t>() : nullptr;
  return number != nullptr && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

std::int64_t length(const Value& value, std::string_view name) {
  const Value* found = value.find(name);
  const auto* list = found != nullptr ? found->get_if<ValueList>() : nullptr;
  return static_cast<std::int64_t>(list != nullptr ? list->size() : 0);
}

template <class T>
Result<void> nothing(const Result<T>& answer) {
  if (!answer) return answer.error();
  return {};
}

// What a server is told of a recipe.
ValueDict body_of(const ModelRecipe& recipe) {
  ValueDict body{{"model", recipe.model}};
  const ModelSettings& settings = recipe.settings;
  const auto add = [&body](const char* name, auto value) {
    if (!value.empty()) body.emplace_back(name, std::move(value));
  };
  ValueDict files;
  for (const auto& [name, digest] : recipe.files) files.emplace_back(name, digest);
  ValueDict adapters;
  for (const auto& [name, digest] : recipe.adapters) adapters.emplace_back(name, digest);
  add("from", recipe.from);
  add("files", std::move(files));
  add("adapters", std::move(adapters));
  add("template", settings.template_text);
  add("system", settings.system);
  add("parameters", settings.parameters);
  add("messages", settings.messages);
  add("license", ValueList(settings.licences.begin(), settings.licences.end()));
  add("quantize", recipe.quantize);
  return body;
}

class RemoteService final : public ModelService {
 public:
  explicit RemoteService(RemoteCall call) : call_(std::move(call)) {}

  Result<Value> list(const std::string& part_of_name) override {
    return call_.get("/v1/registry?name=" + registry::percent_encoded(part_of_name));
  }
  Result<Value> show(const std::string& name, bool verbose) override {
    return call_.post("/api/show", ValueDict{{"model", name}, {"verbose", verbose}});
  }
  Result<Value> running() override { return call_.get("/api/ps"); }

  Result<Value> status() override {
    const Result<Value> version = call_.get("/version");
    if (!version) return version;
    const Result<Value> models = list("");
    if (!models) return models;
    const Result<Value> loaded = running();
    if (!loaded) return loaded;
    return Value(ValueDict{{"server", call_.url()},
                           {"version", text_member(*version, "version")},
                           {"models", length(*models, "data")},
                           {"loaded", length(*loaded, "models")}});
  }

  Result<void> stop(const std::string& name) override {
    return nothing(call_.post("/api/generate", ValueDict{{"model", name}, {"keep_alive", 0}, {"stream", false}}));
  }
  Result<void> copy(const std::string& from, const std::string& to) override {
    return nothing(call_.post("/api/copy", ValueDict{{"source", from}, {"destination", to}}));
  }
  Result<void> remove(const std::string& name) override { return call_.remove("/api/delete", ValueDict{{"model", name}}); }

  Result<std::string> put_file(const std::string& path, const ProgressSink& progress) override {
    const Result<registry::Digest> digest = registry::digest_of_file(path);
    if (!digest) return digest.error();
    const std::string route = "/api/blobs/" + digest->text();
    const Result<bool> known = call_.has(route);
    if (!known) return known.error();
    if (*known) return digest->text();
    const auto on_sent = [&](std::uint64_t sent) { return progress({"sending file", digest->text(), 0, sent}); };
    if (const Result<void> sent = call_.send_file(route, path, on_sent); !sent) return sent.error();
    return digest->text();
  }

  Result<void> create(const ModelRecipe& recipe, const ProgressSink& progress) override {
    return steps("/api/create", body_of(recipe), progress);
  }
  Result<void> pull(const TransferWish& wish, const ProgressSink& progress) override {
    return steps("/api/pull", ValueDict{{"model", wish.model}, {"insecure", wish.insecure}}, progress);
  }
  Result<void> push(const TransferWish& wish, const ProgressSink& progress) override {
    return steps("/api/push", ValueDict{{"model", wish.model}, {"insecure", wish.insecure}}, progress);
  }

 private:
  Result<void> steps(const std::string& path, ValueDict body, const ProgressSink& progress) const {
    std::string error;
    bool succeeded = false;
    const Result<void> done = call_.lines(path, std::move(body), [&](const Value& line) {
      if (std::string fault = text_member(line, "error"); !fault.empty()) error = std::move(fault);
      const std::string status = text_member(line, "status");
      succeeded = succeeded || status == "success";
      return status.empty() || progress({status, text_member(line, "digest"), count(line, "total"), count(line, "completed")});
    });
    if (!done) return done;
    if (error.empty() && !succeeded) error = "the server's answer broke off";
    if (error.empty()) return {};
    return Error{ErrorCode::kIo, error, ""};
  }

  RemoteCall call_;
};

}  // namespace

std::unique_ptr<ModelService> remote_service(const std::string& url, const DataOptions& data) {
  return std::make_unique<RemoteService>(RemoteCall(url, data));
}

}  // namespace braid::app
