#include "registry/manifest.h"

#include "registry/json.h"
#include "registry/model_ref.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::registry {
namespace {

constexpr std::string_view kLayerPrefix = "application/vnd.ollama.image.";
constexpr std::size_t kMostLayers = 1000;
constexpr std::int64_t kMostLayerBytes = std::int64_t{1} << 50;

Result<Layer> read_layer(const Value& value, std::string_view name) {
  const auto wrong = [name](std::string_view what) {
    return Error{ErrorCode::kBadFile, fmt::format("the manifest of {} {}", name, what), ""};
  };
  const Result<Digest> digest = Digest::parse(text_member(value, "digest"));
  if (!digest) return wrong("has a layer without a right digest");
  const std::int64_t bytes = number_member(value, "size", -1);
  if (bytes < 0 || bytes > kMostLayerBytes) return wrong("has a layer without a right size");
  std::string type = text_member(value, "mediaType");
  if (type.empty()) return wrong("has a layer without a media type");
  std::string file = text_member(value, "name");
  if (layer_type(layer::kFile) != type) file.clear();  // others mean something else by it
  if (!file.empty() && !is_file_name(file)) return wrong("has a file whose name is no plain one");
  return Layer{std::move(type), *digest, static_cast<std::uint64_t>(bytes), std::move(file)};
}

Value to_value(const Layer& layer) {
  ValueDict dict{{"mediaType", layer.media_type}, {"digest", layer.digest.text()}, {"size", static_cast<std::int64_t>(layer.bytes)}};
  if (!layer.name.empty()) dict.emplace_back("name", layer.name);
  return dict;
}

}  // namespace

bool Layer::is(std::string_view kind) const {
  return media_type.starts_with(kLayerPrefix) && std::string_view(media_type).substr(kLayerPrefix.size()) == kind;
}

std::string layer_type(std::string_view kind) { return fmt::format("{}{}", kLayerPrefix, kind); }

bool is_file_name(std::string_view name) {
  constexpr int kMostParts = 3;
  for (int parts = 0; parts < kMostParts; ++parts) {
    const std::size_t slash = name.find('/');
    if (!is_name_part(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
  return false;
}

std::uint64_t Manifest::bytes() const {
  std::uint64_t bytes = 0;
  for (const Layer* blob : blobs()) bytes += blob->bytes;
  return bytes;
}

const Layer* Manifest::find(std::string_view kind) const {
  const auto found = std::ranges::find_if(layers, [kind](const Layer& layer) { return layer.is(kind); });
  return found != layers.end() ? &*found : nullptr;
}

std::vector<const Layer*> Manifest::blobs() const {
  std::vector<const Layer*> all = {&config};
  for (const Layer& layer : layers)
    if (std::ranges::none_of(all, [&layer](const Layer* other) { return other->digest == layer.digest; })) all.push_back(&layer);
  return all;
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view name) {
  const Result<Value> document = parse_json(text, fmt::format("the manifest of {}", name));
  if (!document) return document.error();
  const Value* config = document->find("config");
  const Value* layers = document->find("layers");
  const auto* list = layers != nullptr ? layers->get_if<ValueList>() : nullptr;
  if (number_member(*document, "schemaVersion", 0) != 2 || config == nullptr || list == nullptr)
    return Error{ErrorCode::kBadFile, fmt::format("the manifest of {} is none of version 2", name), ""};
  if (list->size() > kMostLayers) return Error{ErrorCode::kBadFile, fmt::format("the manifest of {} has too many layers", name), ""};
  Result<Layer> head = read_layer(*config, name);
  if (!head) return head.error();
  Manifest manifest{std::move(*head), {}};
  for (const Value& value : *list) {
    Result<Layer> one = read_layer(value, name);
    if (!one) return one.error();
    manifest.layers.push_back(std::move(*one));
  }
  return manifest;
}

std::string write_manifest(const Manifest& manifest) {
  ValueList layers;
  for (const Layer& one : manifest.layers) layers.push_back(to_value(one));
  return to_json(ValueDict{{"schemaVersion", 2},
                           {"mediaType", std::string(kManifestType)},
                           {"config", to_value(manifest.config)},
                           {"layers", std::move(layers)}});
}

}  // namespace braid::registry
