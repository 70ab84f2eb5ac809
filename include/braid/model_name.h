// Names of models: [folder/]name[.gguf][:tag].
#pragma once

#include <string_view>

namespace braid {

// Whether `asked` may stand for the model `id`: their names are the same, and what only one of them has beside it is left out. "latest" is
// no tag.
inline bool may_name(std::string_view asked, std::string_view id) {
  struct Parts {
    std::string_view folder, name, tag;

    explicit Parts(std::string_view text) : name(text) {
      if (const auto slash = name.rfind('/'); slash != std::string_view::npos) {
        folder = name.substr(0, slash);
        name.remove_prefix(slash + 1);
      }
      if (const auto colon = name.find(':'); colon != std::string_view::npos) {
        tag = name.substr(colon + 1);
        name = name.substr(0, colon);
      }
      if (tag == "latest") tag = {};
      if (name.ends_with(".gguf")) name.remove_suffix(5);
    }
  };
  const auto agree = [](std::string_view a, std::string_view b) { return a.empty() || b.empty() || a == b; };
  const Parts one(asked);
  const Parts other(id);
  return !one.name.empty() && one.name == other.name && agree(one.folder, other.folder) && agree(one.tag, other.tag);
}

}  // namespace braid
