// The models that can be asked for, and which one a name means.
#pragma once

#include "app/options.h"
#include "braid/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

struct FoundModel {
  ServedModelOptions options;
  std::vector<std::string> aliases = {};
  std::uint64_t bytes = 0;    // of its files
  std::int64_t modified = 0;  // Unix seconds, of its files
  bool is_named = false;      // on the command line
};

// Gives all that there are now. Called off the loop, by one thread at a time.
using FindModels = std::function<std::vector<FoundModel>()>;

// What the options name: those of the command line in their order, then what lies in the folders of --models-dir, in the order of their
// ids: GGUF files (of split ones the first part) and folders with a config.json and weights, three levels deep. The id of the latter is their
// path within the folder, without ".gguf". Small networks are left out. What cannot be read is left out.
// Behind them the models of the registry, which outlives them, if there is one, that have none of these ids.
std::vector<FoundModel> find_models(const ServeOptions& options, ModelRegistry* registry = nullptr);

// One of them, by what it is called.
struct NamedModel {
  std::string_view id;
  std::span<const std::string> aliases;
};

// The index of the one that is meant: by its id, an alias, a name that may stand for one only (model_name.h), or the beginning of one only.
// kNotFound with the names that are nearest, or with those between which it does not decide.
Result<std::size_t> find_named(std::string_view name, std::span<const NamedModel> models);

}  // namespace braid::app
