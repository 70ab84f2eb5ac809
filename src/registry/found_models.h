// Models in a folder that somebody else fills: GGUF files, and folders as on the hub.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid::registry {

struct FoundModel {
  std::string name;      // as ModelRef::text(); in a folder within the folder, with that one's name before it
  std::string path;      // of a split file the first part
  std::string identity;  // of its files' names, sizes and times: another one after any change
  std::int64_t modified = 0;
};

// Looks four levels deep, in the order of names; of two with the same name the first one counts, what cannot be read is not there. Opens no
// file.
std::vector<FoundModel> find_models(const std::string& folder);

}  // namespace braid::registry
