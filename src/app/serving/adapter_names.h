// What adapters of any kind of model have in common: their names, and what a request makes of its base by them.
#pragma once

#include "app/serving/adapter_loading.h"
#include "braid/adapters.h"
#include "braid/served_model.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

inline constexpr std::size_t kMostAdaptersTogether = 4;  // of one request: their revisions and scales are part of its blocks' key

// An adapter under its name.
struct AdapterEntry {
  AdapterFacts facts;
  std::shared_ptr<const LoadedAdapter> loaded;
  std::shared_ptr<const LoadedAdapter> of_first = {};  // as it was for the weights that were loaded, where it is that no more
  // Stands for the name as long as that stands for this revision (AdapterSet::Part::name).
  std::shared_ptr<const void> name = std::make_shared<const char>();
};

// Whether it was made for these weights of the base alone: it follows from them, and was not there before they were.
bool is_of_newer_weights_alone(const AdapterEntry& entry);

// The adapters that a model had when it was unloaded. Immutable; any thread.
struct KeptAdapters {
  std::string base;                         // digest of the weights for which they were made
  std::vector<AdapterEntry> entries;        // in the order of their numbers
  std::uint32_t numbers = 0;                // given out
  std::vector<std::string> own_paths = {};  // of those that were part of the model
  std::string revision = {};                // of the weights that those follow from that do; empty: that which was loaded
};

// kInvalidArgument: it can be no adapter's name.
Result<void> check_adapter_name(std::string_view name);

// Loop only.
Result<AdapterEntry*> chosen_adapter(std::vector<AdapterEntry>& entries, const AdapterChoice& choice);
// kInvalidArgument: there are more than a request may have.
Result<void> check_adapter_count(std::size_t count);
Error only_whole(const std::string& name);

// What a load finds under the name that it is for.
struct NamedBefore {
  std::shared_ptr<const LoadedAdapter> loaded;  // null: nothing
  std::string path;                             // of the source, or of what is there
};
// kInvalidArgument: there is an adapter of the name, which is not to be replaced.
Result<NamedBefore> named_before(const std::vector<AdapterEntry>& entries, const std::string& name, const WeightSource& source,
                                 bool replaces);
// kInvalidArgument: it is another revision than the expected one.
Result<AdapterFacts> facts_of(const LoadedAdapter& loaded, const std::string& name, const std::string& path, const std::string& expected);
// The name stands for it from now on; `numbers` have been given out, and its facts get the name's. What the name stood for; nothing: it is new.
std::optional<AdapterEntry> give_name(std::vector<AdapterEntry>& entries, std::uint32_t& numbers, AdapterFacts& facts,
                                      std::shared_ptr<const LoadedAdapter> loaded);

// Takes that of the name away; nothing: there is none.
std::optional<AdapterEntry> take_entry(std::vector<AdapterEntry>& entries, std::string_view name);

// What a request makes of its base.
struct AdaptedModel {
  ServedModel served;
  std::shared_ptr<const ServedModel> base;
};
// `names`: of the adapters, joined; empty: its id is the base's. `classes`: of a head that one of them brings; 0: none does.
std::shared_ptr<AdaptedModel> adapted_model(std::shared_ptr<const ServedModel> base, AdapterUse use, const std::string& names,
                                            std::int64_t classes);

}  // namespace braid::app
