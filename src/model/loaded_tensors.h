// What newer values of a model's tensors must fit: the names, shapes and types of those that it was loaded with.
#pragma once

#include "braid/result.h"
#include "files/byte_source.h"
#include "files/gguf.h"
#include "files/hf_folder.h"
#include "files/safetensors.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace braid::model {

// Of a GGUF file or a folder of the hub. Immutable; any thread.
struct LoadedTensors {
  struct Tensor {
    std::uint32_t type = 0;           // ggml's number
    std::vector<std::int64_t> shape;  // rows first, as safetensors have it
  };

  std::map<std::string, Tensor, std::less<>> tensors;
  std::string folder;                          // its path; empty: it was a file
  std::string config;                          // of the folder
  std::map<std::string, std::string> origins;  // likewise: of which of them each tensor of a file is made
  std::string fault;                           // why they cannot be replaced; empty: they can

  static LoadedTensors of(const files::GgufFile& file);
  // Errors are those of read_folder().
  static Result<LoadedTensors> of(const files::HfFolder& folder);
};

struct NewerTensors {
  files::GgufFile file;
  std::map<std::string, std::string> digests;  // 32 hexadecimal digits of the values of each, by the names of what was loaded
};

// The tensors of a safetensors file, each in the type that it was loaded with (quantised types are rounded plainly), as the file of a model
// that has no others. kBadFile, kUnsupported: a sentence that names the tensor.
Result<NewerTensors> newer_tensors(const LoadedTensors& loaded, std::shared_ptr<const files::ByteSource> file, bool partial);

}  // namespace braid::model
