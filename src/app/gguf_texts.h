// Lists of texts in the metadata of a GGUF file.
#pragma once

#include "files/gguf.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace braid::app {

// Null: the key is missing, or holds something else. Valid as long as the file.
inline const std::vector<std::string>* texts_of(const files::GgufFile& file, std::string_view key) {
  const files::GgufValue* value = file.find(key);
  const auto* list = value != nullptr ? std::get_if<files::GgufArray>(value) : nullptr;
  return list != nullptr ? std::get_if<std::vector<std::string>>(&list->items) : nullptr;
}

// Names of the classes of an architecture's head.
inline const std::vector<std::string>* class_names_of(const files::GgufFile& file, const std::string& architecture) {
  return texts_of(file, architecture + ".classifier.output_labels");
}

}  // namespace braid::app
