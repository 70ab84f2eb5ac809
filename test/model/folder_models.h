// The tiny random models of reference/folders.
#pragma once

#include "files/hf_folder.h"
#include "model/families/families.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace braid::model::test {

inline std::string folder_path(const std::string& name) { return BRAID_SOURCE_DIR "/test/model/reference/folders/" + name; }

inline files::GgufFile open_folder_model(const std::string& name) {
  return files::GgufFile::from_contents(read_folder(files::HfFolder::open(folder_path(name)).value()).value());
}

inline std::vector<std::string> folder_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_path(""))) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

inline std::string folder_test_name(const testing::TestParamInfo<std::string>& suite) {
  std::string name = suite.param;
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name;
}

}  // namespace braid::model::test
