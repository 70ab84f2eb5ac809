#include "registry/transfer.h"

#include "registry/hub_client.h"
#include "registry/json.h"
#include "registry/manifest.h"
#include "registry/registry_client.h"
#include "registry/stopped.h"

#include <fmt/format.h>
#include <utility>

namespace braid::registry {
namespace {

bool say(const ProgressSink& progress, std::string status) { return progress({std::move(status), "", 0, 0}); }

Result<void> publish(Library& library, const ModelRef& ref, std::string_view manifest, const ProgressSink& progress) {
  if (!say(progress, "writing manifest")) return stopped();
  if (const Result<void> published = library.publish(ref, manifest); !published) return published;
  static_cast<void>(say(progress, "success"));
  return {};
}

Result<void> pull_from_registry(Library& library, const RemoteOptions& options, const ModelRef& ref, bool insecure,
                                const ProgressSink& progress) {
  RegistryClient client(options, ref, insecure);
  const Result<std::string> text = client.manifest();
  if (!text) return text.error();
  const Result<Manifest> manifest = parse_manifest(*text, ref.text());
  if (!manifest) return manifest.error();
  for (const Layer* one : manifest->blobs())
    if (const Result<void> came = download(library.blobs(), options.http, options.download, client.blob(*one), progress); !came)
      return came;
  return publish(library, ref, *text, progress);
}

// A file of the hub as a layer, once it is here.
Result<Layer> fetch_file(Library& library, const RemoteOptions& options, HubClient& client, const HubFile& file, bool alone,
                         const ProgressSink& progress) {
  const bool projects = file.path.find("mmproj") != std::string::npos;
  const std::string_view kind = projects ? layer::kProjector : alone ? layer::kModel : layer::kFile;
  const std::string name = kind == layer::kFile ? file.path : "";
  if (file.digest) {
    const Result<void> came = download(library.blobs(), options.http, options.download, client.large(file), progress);
    if (!came) return came.error();
    return Layer{layer_type(kind), *file.digest, file.bytes, name};
  }
  if (!say(progress, fmt::format("pulling {}", file.path))) return stopped();
  const Result<std::string> bytes = client.small(file);
  if (!bytes) return bytes.error();
  const Result<Digest> digest = library.blobs().put(*bytes);
  if (!digest) return digest.error();
  return Layer{layer_type(kind), *digest, bytes->size(), name};
}

Result<void> pull_from_hub(Library& library, const RemoteOptions& options, const ModelRef& ref, bool insecure,
                           const ProgressSink& progress) {
  HubClient client(options, ref, insecure);
  const Result<std::vector<HubFile>> files = client.files();
  if (!files) return files.error();
  const Result<std::vector<HubFile>> chosen = choose_files(*files, ref);
  if (!chosen) return chosen.error();
  std::size_t weights = 0;
  for (const HubFile& file : *chosen) weights += file.path.find("mmproj") == std::string::npos ? 1 : 0;
  std::vector<Layer> layers;
  for (const HubFile& file : *chosen) {
    Result<Layer> one = fetch_file(library, options, client, file, weights == 1, progress);
    if (!one) return one.error();
    layers.push_back(std::move(*one));
  }
  const std::string config = to_json(ValueDict{{"model_format", weights == 1 ? "gguf" : "folder"},
                                               {"source", fmt::format("{}/{}/{}", options.hub, ref.owner, ref.model)}});
  const Result<Digest> digest = library.blobs().put(config);
  if (!digest) return digest.error();
  return publish(library, ref, write_manifest({Layer{std::string(kConfigType), *digest, config.size(), ""}, std::move(layers)}), progress);
}

}  // namespace

Result<void> pull_model(Library& library, const RemoteOptions& options, const TransferWish& wish, const ProgressSink& progress) {
  const Result<ModelRef> ref = ModelRef::parse(wish.model);
  if (!ref) return ref.error();
  if (!say(progress, "pulling manifest")) return stopped();
  return ref->is_hub() ? pull_from_hub(library, options, *ref, wish.insecure, progress)
                       : pull_from_registry(library, options, *ref, wish.insecure, progress);
}

Result<void> push_model(Library& library, const RemoteOptions& options, const TransferWish& wish, const ProgressSink& progress) {
  const Result<CatalogueEntry> entry = library.find(wish.model);
  if (!entry) return entry.error();
  Result<ModelRef> ref = ModelRef::parse(entry->model.name);
  if (!ref) return ref.error();
  if (!entry->origin.empty())
    return invalid_argument(fmt::format("{} is a file of a watched folder: create a model from it first", entry->model.name), "model");
  if (ref->is_hub()) return invalid_argument("nothing is pushed to a hub: copy the model to the name of a registry first", "model");
  const Result<std::string> text = library.manifests().text(*ref);
  if (!text) return text.error();
  const Result<Manifest> manifest = parse_manifest(*text, ref->text());
  if (!manifest) return manifest.error();
  if (const Result<ModelRef> asked = ModelRef::parse(wish.model); asked) ref->scheme = asked->scheme;
  if (!say(progress, "retrieving manifest")) return stopped();
  RegistryClient client(options, *ref, wish.insecure);
  for (const Layer* one : manifest->blobs()) {
    const std::string status = fmt::format("pushing {}", one->digest.digits().substr(0, 12));
    const Result<bool> there = client.has_blob(one->digest);
    if (!there) return there.error();
    if (!*there) {
      const auto on_sent = [&](std::uint64_t sent) { return progress({status, one->digest.text(), one->bytes, sent}); };
      if (const Result<void> sent = client.put_blob(one->digest, library.blobs().path_of(one->digest), on_sent); !sent) return sent;
    }
    if (!progress({status, one->digest.text(), one->bytes, one->bytes})) return stopped();
  }
  if (!say(progress, "pushing manifest")) return stopped();
  if (const Result<void> sent = client.put_manifest(*text); !sent) return sent;
  static_cast<void>(say(progress, "success"));
  return {};
}

}  // namespace braid::registry
