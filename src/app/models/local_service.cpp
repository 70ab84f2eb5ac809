// Without a server: the data folder itself.
#include "app/models/data_folder.h"
#include "app/models/model_service.h"
#include "app/models/open_registry.h"
#include "net/json/parse.h"
#include "net/ollama/shown_model.h"
#include "registry/digest.h"
#include "registry/durable_file.h"

#include <fmt/format.h>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

Error no_server() {
  return {ErrorCode::kModelNotLoaded, "no server is running; `braid serve` starts one, and --host names one elsewhere", ""};
}

Value to_value(const StoredModel& model) {
  ValueList able;
  for (const std::string& word : model.facts.able) able.emplace_back(word);
  return ValueDict{{"id", model.name},
                   {"object", "registry.model"},
                   {"digest", model.digest},
                   {"bytes", static_cast<std::int64_t>(model.bytes)},
                   {"modified", model.modified},
                   {"last_used", model.last_used},
                   {"source", model.source},
                   {"parent", model.parent},
                   {"format", model.facts.format},
                   {"architecture", model.facts.architecture},
                   {"parameters", model.facts.parameters},
                   {"quantisation", model.facts.quantisation},
                   {"context_length", model.facts.context},
                   {"embedding_length", model.facts.embedding},
                   {"has_template", model.facts.has_template},
                   {"capabilities", std::move(able)}};
}

class LocalService final : public ModelService {
 public:
  LocalService(std::shared_ptr<ModelRegistry> registry, std::string folder) : registry_(std::move(registry)), folder_(std::move(folder)) {}

  Result<Value> list(const std::string& part_of_name) override {
    const Result<std::vector<StoredModel>> models = registry_->list({.name = part_of_name});
    if (!models) return models.error();
    ValueList data;
    for (const StoredModel& model : *models) data.push_back(to_value(model));
    return Value(ValueDict{{"object", "list"}, {"data", std::move(data)}});
  }

  Result<Value> show(const std::string& name, bool verbose) override {
    const Result<ModelDetails> details = registry_->describe(name, verbose);
    if (!details) return details.error();
    std::string text = net::ollama::shown_model(*details, verbose);
    return net::json::parse(text);
  }

  Result<Value> running() override { return no_server(); }
  Result<void> stop(const std::string&) override { return no_server(); }

  Result<Value> status() override {
    const Result<std::vector<StoredModel>> models = registry_->list({});
    if (!models) return models.error();
    std::int64_t bytes = 0;
    for (const StoredModel& model : *models) bytes += static_cast<std::int64_t>(model.bytes);
    return Value(
        ValueDict{{"server", nullptr}, {"data_folder", folder_}, {"models", static_cast<std::int64_t>(models->size())}, {"bytes", bytes}});
  }

  Result<void> copy(const std::string& from, const std::string& to) override { return registry_->copy(from, to); }
  Result<void> remove(const std::string& name) override { return registry_->remove(name); }

  Result<std::string> put_file(const std::string& path, const ProgressSink& progress) override {
    const Result<registry::Digest> digest = registry::digest_of_file(path);
    if (!digest) return digest.error();
    const Result<bool> known = registry_->has_blob(digest->text());
    if (!known) return known.error();
    if (*known) return digest->text();
    const Result<registry::OpenFile> file = registry::OpenFile::read(path);
    if (!file) return file.error();
    const Result<std::uint64_t> total = file->size();
    if (!total) return total.error();
    Result<std::unique_ptr<BlobUpload>> upload = registry_->receive_blob(digest->text());
    if (!upload) return upload.error();
    std::vector<char> piece(kPieceBytes);
    for (std::uint64_t at = 0;;) {
      const Result<std::size_t> size = file->read_at(piece, at);
      if (!size) return size.error();
      if (*size == 0) break;
      if (const Result<void> written = (*upload)->append({piece.data(), *size}); !written) return written.error();
      at += *size;
      if (!progress({"copying file", digest->text(), *total, at})) return Error{ErrorCode::kCancelled, "it was stopped", ""};
    }
    if (const Result<void> finished = (*upload)->finish(); !finished) return finished.error();
    return digest->text();
  }

  Result<void> create(const ModelRecipe& recipe, const ProgressSink& progress) override { return registry_->create(recipe, progress); }
  Result<void> pull(const TransferWish& wish, const ProgressSink& progress) override { return registry_->pull(wish, progress); }
  Result<void> push(const TransferWish& wish, const ProgressSink& progress) override { return registry_->push(wish, progress); }

 private:
  std::shared_ptr<ModelRegistry> registry_;
  std::string folder_;
};

}  // namespace

Result<std::unique_ptr<ModelService>> local_service(const DataOptions& data) {
  Result<std::shared_ptr<ModelRegistry>> registry = open_registry(data);
  if (!registry) return registry.error();
  return std::unique_ptr<ModelService>(std::make_unique<LocalService>(std::move(*registry), data_folder(data.folder)));
}

Result<std::unique_ptr<ModelService>> find_model_service(const DataOptions& data, const std::string& host) {
  if (!host.empty()) return remote_service(host, data);
  if (const std::optional<std::string> server = server_of(data_folder(data.folder))) return remote_service(*server, data);
  return local_service(data);
}

}  // namespace braid::app
