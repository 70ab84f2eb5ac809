#include "app/serving/adapter_names.h"

#include "app/clock.h"
#include "app/encoder_folder.h"
#include "app/serving/served_engine.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::app {
namespace {

constexpr std::size_t kMostNameLength = 128;
constexpr float kMostScale = 1e4F;

// A colon divides a base's name from an adapter's.
bool may_be_named(std::string_view name) {
  return !name.empty() && name.size() <= kMostNameLength &&
         std::ranges::all_of(name, [](unsigned char c) { return c > ' ' && c != 0x7F && c != ':' && c != '"' && c != '\\'; });
}

}  // namespace

bool is_of_newer_weights_alone(const AdapterEntry& entry) {
  const bool follows = entry.loaded != nullptr && entry.loaded->adapter != nullptr && entry.loaded->adapter->follows_weights();
  return follows && entry.of_first == nullptr;
}

Result<void> check_adapter_name(std::string_view name) {
  if (may_be_named(name)) return {};
  return invalid_argument(fmt::format("an adapter's name has 1 to {} characters, and no space, colon, quote or backslash", kMostNameLength),
                          "name");
}

Result<AdapterEntry*> chosen_adapter(std::vector<AdapterEntry>& entries, const AdapterChoice& choice) {
  if (!(choice.scale >= -kMostScale && choice.scale <= kMostScale))
    return invalid_argument(fmt::format("an adapter's scale is {}, expected a number of {} to {}", choice.scale, -kMostScale, kMostScale),
                            "adapter");
  for (AdapterEntry& entry : entries)
    if (choice.number ? entry.facts.number == *choice.number : entry.facts.name == choice.name) return &entry;
  if (!choice.number) return Error{ErrorCode::kNotFound, fmt::format("the adapter '{}' is not loaded", choice.name), "adapter"};
  return invalid_argument(fmt::format("'lora': no adapter with the id {} is loaded", *choice.number), "lora");
}

Result<void> check_adapter_count(std::size_t count) {
  if (count <= kMostAdaptersTogether) return {};
  return invalid_argument(fmt::format("{} adapters are named, expected at most {} in one request", count, kMostAdaptersTogether),
                          "adapter");
}

Error only_whole(const std::string& name) {
  return invalid_argument(fmt::format("the adapter '{}' has magnitudes or whole weights: it is used alone, and with a scale of 1", name),
                          "adapter");
}

Result<NamedBefore> named_before(const std::vector<AdapterEntry>& entries, const std::string& name, const WeightSource& source,
                                 bool replaces) {
  const auto before = std::ranges::find(entries, name, [](const AdapterEntry& entry) { return entry.facts.name; });
  if (before == entries.end()) return NamedBefore{nullptr, source.path};
  if (!replaces)
    return invalid_argument(fmt::format("the adapter '{}' is loaded already: unload it, or ask that it is replaced", name), "name");
  return NamedBefore{before->loaded, source.path.empty() ? before->facts.path : source.path};
}

Result<AdapterFacts> facts_of(const LoadedAdapter& loaded, const std::string& name, const std::string& path, const std::string& expected) {
  AdapterFacts facts;
  facts.name = name;
  facts.path = path;
  facts.created = now_in_unix_seconds();
  const auto take = [&](const auto& adapter, std::uint64_t bytes) {
    facts.revision = adapter.revision;
    facts.rank = adapter.rank;
    facts.parameters = adapter.parameters;
    facts.bytes = bytes;
  };
  if (loaded.of_encoder != nullptr) {
    take(*loaded.of_encoder, loaded.of_encoder->bytes);
  } else {
    take(*loaded.adapter, loaded.adapter->storage.size());
  }
  if (auto other = other_revision(expected, facts.revision)) return std::move(*other);
  return facts;
}

std::optional<AdapterEntry> give_name(std::vector<AdapterEntry>& entries, std::uint32_t& numbers, AdapterFacts& facts,
                                      std::shared_ptr<const LoadedAdapter> loaded) {
  const auto same = std::ranges::find(entries, facts.name, [](const AdapterEntry& entry) { return entry.facts.name; });
  facts.number = same == entries.end() ? numbers : same->facts.number;
  AdapterEntry newer{facts, std::move(loaded)};
  if (same != entries.end()) return std::exchange(*same, std::move(newer));
  entries.push_back(std::move(newer));
  ++numbers;
  return std::nullopt;
}

std::optional<AdapterEntry> take_entry(std::vector<AdapterEntry>& entries, std::string_view name) {
  const auto found = std::ranges::find_if(entries, [&](const AdapterEntry& entry) { return entry.facts.name == name; });
  if (found == entries.end()) return std::nullopt;
  std::optional<AdapterEntry> taken = std::move(*found);
  entries.erase(found);
  return taken;
}

std::shared_ptr<AdaptedModel> adapted_model(std::shared_ptr<const ServedModel> base, AdapterUse use, const std::string& names,
                                            std::int64_t classes) {
  auto adapted = std::make_shared<AdaptedModel>(AdaptedModel{*base, base});
  ServedModel& served = adapted->served;
  if (!names.empty()) served.id = fmt::format("{}:{}", base->id, names);
  if (!use.revision.empty()) served.fingerprint += "-" + use.revision;
  served.adapter = std::move(use);
  if (classes > 0 && std::cmp_not_equal(served.classes.labels.size(), classes)) served.classes = class_rules("{}", classes);
  return adapted;
}

}  // namespace braid::app
