// A model as a Hugging Face folder: config.json, weights in one or several safetensors files, and the texts beside them.
#pragma once

#include "braid/result.h"
#include "files/byte_source.h"
#include "files/safetensors.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::files {

bool is_folder(const std::string& path);

// Owns the mapping of every file of weights. Immutable: any thread may read.
class HfFolder {
 public:
  // kBadFile or kUnsupported with a sentence that names the file: every length and offset is checked, and the index against the files.
  static Result<HfFolder> open(const std::string& path);

  // A folder of which nothing but its config.json is known; `path` is for messages.
  static HfFolder of_config(std::string path, std::string config);

  // The same of a folder that has these tensors, which lie in the sources.
  static HfFolder of_tensors(std::string path, std::string config, std::map<std::string, SafeTensor> tensors,
                             std::vector<std::shared_ptr<const ByteSource>> sources);

  const std::string& path() const { return path_; }
  const std::string& config() const { return config_; }  // the text of config.json
  // The text of another file of the folder; nothing when there is none.
  Result<std::optional<std::string>> text(std::string_view name) const;

  // By name, as the files have them.
  const std::map<std::string, SafeTensor>& tensors() const { return tensors_; }
  const std::vector<std::shared_ptr<const ByteSource>>& sources() const { return sources_; }

 private:
  HfFolder() = default;
  Result<void> add_weights(const std::string& file);
  Result<void> add_shards(const std::string& index);

  std::string path_;
  std::string config_;
  std::map<std::string, SafeTensor> tensors_;
  std::vector<std::shared_ptr<const ByteSource>> sources_;
};

}  // namespace braid::files
