#include "app/serving/adapter_names.h"

#include "app/encoder_folder.h"

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
