// The models that this machine has, loaded or not: pulled and created ones, and those found in folders.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid {

// What weights say of themselves.
struct ModelFacts {
  std::string format;             // gguf or safetensors
  std::string architecture;       // such as llama
  std::int64_t parameters = 0;    // weights in all; 0: not known
  std::string quantisation;       // such as Q4_K_M; empty: not known
  std::int64_t context = 0;       // tokens; 0: not known
  std::int64_t embedding = 0;     // width of a token's vector; 0: not known
  bool has_template = false;      // for chats
  std::vector<std::string> able;  // capabilities as Ollama names them: completion, tools, thinking, vision, embedding, insert
};

struct StoredModel {
  std::string name;            // [host/][namespace/]model:tag, what is usual left out
  std::string digest;          // 64 hexadecimal digits; equal ones are the same model under several names
  std::uint64_t bytes = 0;     // of all its files
  std::int64_t modified = 0;   // Unix seconds
  std::int64_t last_used = 0;  // likewise; 0: never
  std::string source;          // pulled, created or folder
  std::string parent;          // of a created one, the name that it was made from; or empty
  std::string path;            // of its weights: a GGUF file or a folder of the hub
  ModelFacts facts;
};

// What a model's maker wants besides its weights.
struct ModelSettings {
  std::string template_text;                 // in Go's or Jinja's form; empty: that of the weights
  std::string template_file = {};            // the file that holds it
  std::string system;                        // empty: none
  ValueDict parameters;                      // by Ollama's names
  ValueList messages;                        // {"role":…,"content":…}: what every chat begins with
  std::vector<std::string> licences;         // their texts
  std::vector<std::string> adapters;         // paths
  std::vector<std::string> projectors = {};  // likewise
};

struct ModelDetails {
  StoredModel model;
  ModelSettings settings;
  ValueDict info;                // the metadata of its weights; long lists are null unless they were asked for
  ValueList tensors;             // {"name":…,"type":…,"shape":[…]}; empty unless asked for
  std::string weights_template;  // the template that the weights bring
};

// What a listed model must have; what is empty asks for nothing.
struct ModelFilter {
  std::string name = {};  // a part of it
  std::string architecture = {};
  std::string quantisation = {};
  std::string capability = {};
  std::string source = {};
  std::string format = {};
};

struct ModelRecipe {
  using Files = std::vector<std::pair<std::string, std::string>>;  // names, and digests ("sha256:…") of what has been uploaded

  std::string model = {};  // what is made
  std::string from = {};   // the name of a model that is here, or empty
  Files files = {};        // weights
  Files adapters = {};
  ModelSettings settings = {};  // what is empty there is that of `from`
  bool clears_system = false;   // an empty system prompt is meant
  std::string quantize = {};    // such as q4_k_m; empty: as they are
};

struct TransferWish {
  std::string model = {};
  bool insecure = false;  // plain HTTP, or a certificate that nobody vouches for, will do
};

// How far something long is; `total` and `completed` are bytes of the file with that digest, or 0 with an empty digest.
struct TransferProgress {
  std::string status;
  std::string digest;
  std::uint64_t total = 0;
  std::uint64_t completed = 0;
};

// False: nobody wants it any more, and it ends with kCancelled. On the thread that does the work.
using ProgressSink = std::function<bool(const TransferProgress&)>;

// A file that arrives piece by piece, known by its digest. It is there once finish() has said so, and otherwise never.
class BlobUpload {
 public:
  virtual ~BlobUpload() = default;
  virtual Result<void> append(std::string_view bytes) = 0;
  virtual Result<void> finish() = 0;  // kInvalidArgument when the bytes have another digest
};

// Any thread; everything here may wait for a disk or another process, so never on the loop. Names may leave out what is usual (model_ref.h).
class ModelRegistry {
 public:
  virtual ~ModelRegistry() = default;

  virtual Result<std::vector<StoredModel>> list(const ModelFilter& filter) = 0;  // newest first
  virtual Result<StoredModel> find(std::string_view name) = 0;                   // kNotFound with the nearest names
  virtual Result<ModelDetails> describe(std::string_view name, bool verbose) = 0;
  virtual Result<ModelSettings> settings(std::string_view name) = 0;
  virtual void note_use(std::string_view name) = 0;

  virtual Result<void> copy(std::string_view from, std::string_view to) = 0;
  virtual Result<void> remove(std::string_view name) = 0;
  virtual Result<void> create(const ModelRecipe& recipe, const ProgressSink& progress) = 0;
  virtual Result<void> pull(const TransferWish& wish, const ProgressSink& progress) = 0;
  virtual Result<void> push(const TransferWish& wish, const ProgressSink& progress) = 0;

  virtual Result<bool> has_blob(std::string_view digest) = 0;  // kInvalidArgument when it is none
  virtual Result<std::unique_ptr<BlobUpload>> receive_blob(std::string_view digest) = 0;
};

}  // namespace braid
