// Names of models: [scheme://][host[:port]/][namespace/]model[:tag].
#pragma once

#include "braid/result.h"

#include <string>
#include <string_view>

namespace braid::registry {

inline constexpr std::string_view kUsualHost = "registry.ollama.ai";
inline constexpr std::string_view kUsualOwner = "library";
inline constexpr std::string_view kUsualTag = "latest";

// Each part begins with a letter, a digit or "_", and has only those, "-" and "." besides: none leaves the folder that it names.
struct ModelRef {
  std::string host{kUsualHost};  // with its port, if it has one
  std::string owner{kUsualOwner};
  std::string model;
  std::string tag{kUsualTag};
  std::string scheme = {};  // http or https where it was said; no part of the name

  // kInvalidArgument with the name that is none.
  static Result<ModelRef> parse(std::string_view text);

  std::string text() const;  // what is usual left out, but for the tag
  std::string path() const;  // host/owner/model/tag
  bool is_hub() const;       // a hub of folders and files (hf.co), no registry of manifests
  bool operator==(const ModelRef& other) const { return path() == other.path(); }
};

// Whether `text` may be one part of a name.
bool is_name_part(std::string_view text);

// From the name of a file: letters, digits, "_", "-" and "." stay, everything else becomes "-".
std::string name_part_from(std::string_view text);

}  // namespace braid::registry
