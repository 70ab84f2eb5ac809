// A file from another server into the store of blobs: several ranges at once, each gone on with where a run before was ended.
#pragma once

#include "braid/model_registry.h"
#include "braid/result.h"
#include "registry/blob_store.h"
#include "registry/http_client.h"

#include <cstdint>
#include <string>
#include <vector>

namespace braid::registry {

struct DownloadOptions {
  std::uint64_t range_bytes = std::uint64_t{64} << 20;
  int parallel = 8;
  int attempts = 6;                            // of a range without a byte more, before it is given up
  std::chrono::milliseconds first_pause{500};  // before the second attempt; each next one is twice as long
};

struct Download {
  Digest digest;
  std::uint64_t bytes = 0;
  std::string url;
  std::vector<std::string> headers = {};
  bool insecure = false;
};

// Until the blob is here, whole, with its digest. What has come is kept for the next run when it fails, but for bytes that are wrong.
// kBadFile: the server's file has another size or digest; kNotFound: there is none; kUnauthorized; kIo: the server or the disk.
Result<void> download(const BlobStore& blobs, const HttpOptions& http, const DownloadOptions& options, const Download& what,
                      const ProgressSink& progress);

}  // namespace braid::registry
