// A hub of folders and files: which of a repository's files are a model, and where they are.
#pragma once

#include "braid/result.h"
#include "registry/model_ref.h"
#include "registry/remote.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::registry {

struct HubFile {
  std::string path;  // checked by is_file_name()
  std::uint64_t bytes = 0;
  std::optional<Digest> digest = std::nullopt;  // of a large file
  std::string git_digest = {};                  // of a small one: 40 hexadecimal digits
};

// Those of `files` that `tag` means: GGUF files of that quantisation (of "latest" the one that is usual), with the projector beside them;
// or a whole folder of safetensors, where there is no GGUF file. kNotFound with the tags that there are.
Result<std::vector<HubFile>> choose_files(const std::vector<HubFile>& files, const ModelRef& ref);

class HubClient {
 public:
  HubClient(const RemoteOptions& options, const ModelRef& ref, bool insecure);

  // What the repository has; files whose names are no plain ones are left out.
  Result<std::vector<HubFile>> files();
  Download large(const HubFile& file) const;       // of one with a digest
  Result<std::string> small(const HubFile& file);  // of another: its bytes, checked

 private:
  Result<HttpAnswer> get(const std::string& url, std::size_t most) const;
  std::string url_of(const HubFile& file) const;
  std::vector<std::string> headers() const;

  const RemoteOptions& options_;
  ModelRef ref_;
  bool insecure_;
  std::string base_;
};

}  // namespace braid::registry
