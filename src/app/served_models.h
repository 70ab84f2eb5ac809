// The models of a server, one by one, from options that name them in lists.
#pragma once

#include "app/options.h"

#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

// The file's name without folder, ".gguf" and "-00001-of-0000N".
std::string model_id(std::string_view path);

// In the order of the command line; the embedded model where neither one nor a folder of them is named. The lists' lengths fit (models_fault).
std::vector<ServedModelOptions> models_of(const ServeOptions& options);

// The model that guesses for one that is loaded later, because a request names it: where one guesses for all, that. Empty: none.
std::string draft_for_later(const ServeOptions& options, const std::string& model);

// The part of --kv-disk that a model has. One of the command line alone has the folder itself and most of its bytes; of several, and of all
// where there are folders of models, each has a folder in it and an equal share. The registry's have folders in it, and a quarter of the bytes.
DiskOptions disk_options_of(const ServeOptions& options, const std::string& id);

}  // namespace braid::app
