// A registry that speaks Ollama's protocol, which is that of container registries: manifests and blobs.
#pragma once

#include "braid/result.h"
#include "registry/manifest.h"
#include "registry/model_ref.h"
#include "registry/remote.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::registry {

// One model there. Asks for a token where the registry wants one.
class RegistryClient {
 public:
  RegistryClient(const RemoteOptions& options, const ModelRef& ref, bool insecure);

  Result<std::string> manifest();  // its text; kNotFound where there is none
  Download blob(const Layer& layer) const;

  Result<bool> has_blob(const Digest& digest);
  // Sends the file. `on_sent` as HttpRequest::on_upload.
  Result<void> put_blob(const Digest& digest, const std::string& path, const std::function<bool(std::uint64_t)>& on_sent);
  Result<void> put_manifest(const std::string& text);

 private:
  Result<HttpAnswer> send(HttpRequest request, std::size_t most);
  Result<void> authenticate(const std::string& challenge);
  Error fault_of(const HttpAnswer& answer, std::string_view what) const;
  std::string url_of(std::string_view rest) const;
  std::vector<std::string> headers(std::vector<std::string> more = {}) const;

  const RemoteOptions& options_;
  ModelRef ref_;
  bool insecure_;
  bool is_mirror_ = false;  // the operator has said how it is asked
  std::string base_;        // scheme://host[/path]
  std::string token_;
};

}  // namespace braid::registry
