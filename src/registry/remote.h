// Where models are pulled from and pushed to.
#pragma once

#include "registry/download.h"
#include "registry/http_client.h"

#include <string>

namespace braid::registry {

// What the operator says of other servers. Nothing is asked of any of them but by a pull or a push.
struct RemoteOptions {
  std::string mirror;                          // scheme://host[/path] asked in place of the usual registry; empty: that
  std::string registry_token;                  // for registries: sent as a bearer's; empty: none
  std::string key_file;                        // signs what asks a registry for a token, once there is such a file; empty: never
  std::string hub = "https://huggingface.co";  // HF_ENDPOINT
  std::string hub_token;                       // HF_TOKEN; empty: none
  HttpOptions http;
  DownloadOptions download;
};

}  // namespace braid::registry
