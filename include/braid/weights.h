// Weights of a model or a network that is served: immutable revisions, whose place newer ones take while it runs. Everything here belongs to
// the loop's thread.
#pragma once

#include "braid/result.h"

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid {

// Where tensors come from.
struct WeightSource {
  std::string path;           // a file or a folder; or
  std::string tensors;        // a safetensors file itself
  bool partial = false;       // tensors that it does not have stay what they are
  std::string checksum;       // SHA-256 of the file, in hexadecimal digits; empty: any
  std::string revision = {};  // that is to come of it; empty: any
};

// Why what has been made of a source is not what it was to be; none: it is.
inline std::optional<Error> other_revision(const std::string& expected, const std::string& made) {
  if (expected.empty() || expected == made) return std::nullopt;
  return invalid_argument("it comes to the revision " + made + " here, and " + expected + " was expected: the files differ");
}

// What becomes of requests that wait or run: they end on the revision that they began with, or are ended, or go on with the newer one.
enum class UpdateMode { kFinish, kAbort, kKeep };

// The revision that new requests get.
struct WeightFacts {
  std::string revision;       // digest of all values
  std::string version;        // what whoever writes them calls it; may be empty
  std::int64_t created = 0;   // Unix seconds
  std::uint64_t updates = 0;  // since it was loaded
};

struct TensorDigest {
  std::string name;  // as the file has it
  std::vector<std::int64_t> shape;
  std::string sha256;  // of the values as they are computed with, as little-endian float32; of integers as they are stored
};

class LiveWeights {
 public:
  virtual ~LiveWeights() = default;

  virtual const WeightFacts& facts() const = 0;
  virtual void name_version(std::string version) = 0;

  // Reads, holds against what is loaded, and prepares elsewhere than on the loop and the strand; then new requests get it. One at a time, in
  // the order in which they were asked for. Whatever fails changes nothing. kInvalidArgument: a sentence that names the tensor; kNotFound: the
  // file.
  virtual boost::asio::awaitable<Result<WeightFacts>> update(WeightSource source, UpdateMode mode) = 0;

  // Of the revision that new requests get, in the order of the names.
  virtual boost::asio::awaitable<Result<std::vector<TensorDigest>>> digests() = 0;
};

}  // namespace braid
