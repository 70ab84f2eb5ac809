// Adapters as they are stored: folders of PEFT, and GGUF files as llama.cpp's converter writes them.
#pragma once

#include "braid/result.h"
#include "files/hf_folder.h"
#include "model/adapters/peft_config.h"
#include "model/adapters/stored_adapter.h"
#include "model/model_shape.h"

#include <memory>
#include <optional>
#include <string>

namespace braid::model {

// The base, as far as names depend on it.
struct AdaptedBase {
  const ModelShape& shape;
  std::string folder;  // of the hub, that it was loaded from; empty: it was a file
};

// The folder or file. Any thread. kIo, kBadFile, kUnsupported: a sentence that names the file, and the key or tensor.
Result<StoredAdapter> read_adapter(const std::string& path, const AdaptedBase& base);

// What a folder of PEFT has, before it is held against any base.
struct PeftFolder {
  std::shared_ptr<const PeftConfig> config;
  std::shared_ptr<const files::ByteSource> tensors;
};
Result<PeftFolder> read_peft_folder(const std::string& path);

// The base's folder, or of a file what its config.json would be, as far as names depend on it. kIo, kBadFile, kUnsupported.
Result<files::HfFolder> folder_of(const AdaptedBase& base);

// Of the tensors of a safetensors file as PEFT names them.
Result<StoredAdapter> read_peft_tensors(std::shared_ptr<const PeftConfig> config, std::shared_ptr<const files::ByteSource> source,
                                        const AdaptedBase& base);

// The tensors of `newer` in the place of those of `older`, which has them all, as one safetensors file.
Result<std::shared_ptr<const files::ByteSource>> with_newer_tensors(const files::ByteSource& older, const files::ByteSource& newer);

// Of a GGUF file, for a base whose files have this architecture and call its embeddings so.
Result<StoredAdapter> read_gguf_adapter(std::shared_ptr<const files::ByteSource> source, const std::string& architecture,
                                        const std::string& embedding);

}  // namespace braid::model
