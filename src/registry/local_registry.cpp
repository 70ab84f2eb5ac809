#include "registry/local_registry.h"

#include "registry/durable_file.h"
#include "registry/settings.h"
#include "registry/transfer.h"
#include "registry/weights_facts.h"

#include <fmt/format.h>
#include <utility>

namespace braid::registry {
namespace {

class BlobReceiver final : public BlobUpload {
 public:
  BlobReceiver(NewBlob blob, Digest digest) : blob_(std::move(blob)), digest_(std::move(digest)) {}

  Result<void> append(std::string_view bytes) override { return blob_.append(bytes); }
  Result<void> finish() override {
    const Result<Digest> kept = blob_.keep(digest_);
    if (!kept) return kept.error();
    return {};
  }

 private:
  NewBlob blob_;
  Digest digest_;
};

class LocalRegistry final : public ModelRegistry {
 public:
  LocalRegistry(LocalRegistryOptions options, std::unique_ptr<Library> library)
      : options_(std::move(options)), library_(std::move(library)) {}

  Result<void> watch() {
    std::vector<std::string> folders = library_->options().model_folders;
    folders.push_back(library_->manifests().folder());
    Result<std::unique_ptr<FolderWatch>> watch = FolderWatch::start(std::move(folders), [this] {
      if (const Result<void> fresh = library_->refresh(); !fresh) library_->options().warn(fresh.error().message);
      if (options_.changed) options_.changed();
    });
    if (!watch) return watch.error();
    watch_ = std::move(*watch);
    return library_->refresh();  // what came before the watch
  }

  Result<std::vector<StoredModel>> list(const ModelFilter& filter) override { return library_->list(filter); }

  Result<StoredModel> find(std::string_view name) override {
    Result<CatalogueEntry> entry = library_->find(name);
    if (!entry) return entry.error();
    return std::move(entry->model);
  }

  Result<ModelDetails> describe(std::string_view name, bool verbose) override {
    Result<CatalogueEntry> entry = library_->find(name);
    if (!entry) return entry.error();
    ModelDetails details;
    Result<ModelSettings> settings = read_settings(*entry);
    if (!settings) return settings.error();
    details.settings = std::move(*settings);
    Result<ValueDict> info = read_metadata(entry->model.path, verbose, details.tensors);
    if (!info) return info.error();
    details.info = std::move(*info);
    Result<WeightsFacts> facts = library_->facts(*entry);
    if (!facts) return facts.error();
    details.weights_template = std::move(facts->chat_template);
    if (details.settings.licences.empty() && !facts->licence.empty()) details.settings.licences.push_back(facts->licence);
    details.model = std::move(entry->model);
    return details;
  }

  Result<ModelSettings> settings(std::string_view name) override {
    const Result<CatalogueEntry> entry = library_->find(name);
    if (!entry) return entry.error();
    return read_settings(*entry);
  }

  void note_use(std::string_view name) override { static_cast<void>(library_->note_use(name)); }

  Result<void> copy(std::string_view from, std::string_view to) override {
    const Result<ModelRef> target = ModelRef::parse(to);
    if (!target) return target.error();
    const Result<CatalogueEntry> entry = library_->find(from);
    if (!entry) return entry.error();
    if (!entry->origin.empty())
      return invalid_argument(fmt::format("{} is a file of a watched folder: create a model from it", entry->model.name), "source");
    const Result<ModelRef> source = ModelRef::parse(entry->model.name);
    if (!source) return source.error();
    const Result<std::string> text = library_->manifests().text(*source);
    if (!text) return text.error();
    return library_->publish(*target, *text);
  }

  Result<void> remove(std::string_view name) override {
    const Result<CatalogueEntry> entry = library_->find(name);
    if (!entry) return entry.error();
    const Result<ModelRef> asked = ModelRef::parse(name);
    if (!asked || asked->text() != entry->model.name)
      return Error{ErrorCode::kNotFound, fmt::format("model '{}' not found; to remove {}, give its whole name", name, entry->model.name),
                   "model"};
    return library_->remove(*entry);
  }

  Result<void> create(const ModelRecipe& recipe, const ProgressSink& progress) override {
    return create_model(*library_, options_.tools, recipe, progress);
  }
  Result<void> pull(const TransferWish& wish, const ProgressSink& progress) override {
    return pull_model(*library_, options_.remote, wish, progress);
  }
  Result<void> push(const TransferWish& wish, const ProgressSink& progress) override {
    return push_model(*library_, options_.remote, wish, progress);
  }

  Result<bool> has_blob(std::string_view text) override {
    const Result<Digest> digest = Digest::parse(text);
    if (!digest) return digest.error();
    return library_->blobs().size_of(*digest).has_value();
  }

  Result<std::unique_ptr<BlobUpload>> receive_blob(std::string_view text) override {
    Result<Digest> digest = Digest::parse(text);
    if (!digest) return digest.error();
    Result<NewBlob> blob = library_->blobs().begin();
    if (!blob) return blob.error();
    return std::unique_ptr<BlobUpload>(std::make_unique<BlobReceiver>(std::move(*blob), std::move(*digest)));
  }

 private:
  LocalRegistryOptions options_;
  std::unique_ptr<Library> library_;
  std::unique_ptr<FolderWatch> watch_;  // refers to the library
};

}  // namespace

Result<std::unique_ptr<ModelRegistry>> open_registry(LocalRegistryOptions options) {
  Result<std::unique_ptr<Library>> library = Library::open(options.library);
  if (!library) return library.error();
  const bool watches = options.watches;
  auto registry = std::make_unique<LocalRegistry>(std::move(options), std::move(*library));
  if (watches)
    if (const Result<void> watched = registry->watch(); !watched) return watched.error();
  return std::unique_ptr<ModelRegistry>(std::move(registry));
}

}  // namespace braid::registry
