// What the HTTP side sees of the model that is being served. Loop only.
#pragma once

#include "braid/constraint.h"
#include "braid/engine.h"
#include "braid/generation_request.h"
#include "braid/image_reader.h"
#include "braid/model_name.h"
#include "braid/model_registry.h"
#include "braid/pooled_model.h"
#include "braid/predictor.h"
#include "braid/request_defaults.h"
#include "braid/text_codec.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid {

class Adapters;
class LiveWeights;

// From what tokens of a model's answers can be guessed.
struct DraftMeans {
  bool texts = true;    // from texts, by the sequence's own and others
  bool model = false;   // by a small model
  bool heads = false;   // by heads of its own
  std::string nothing;  // why nothing is ever guessed, as in "this server was started with --speculate off"; empty: something is

  // Why a request may not ask for it, likewise; empty: it may.
  std::string refusal_of(DraftMethod method) const {
    if (method == DraftMethod::kAuto || method == DraftMethod::kOff) return {};
    if (!nothing.empty()) return nothing;
    if (method == DraftMethod::kDraft && !model) return "this server has no draft model (--draft)";
    if (method == DraftMethod::kMtp && !heads) return "the model has no heads for tokens further on";
    return {};
  }
};

// Of one of the processes that compute a model together, since it was loaded: that it computed, and that it waited for the others and for
// what they sent.
struct RankSeconds {
  double compute = 0.0;
  double exchange = 0.0;
};

struct ServedModel {
  std::string id;                   // the file's name without .gguf and shard suffix, or --alias
  std::int64_t created = 0;         // Unix seconds of loading
  std::int32_t context_length = 0;  // tokens, prompt and answer together
  std::string architecture;
  std::int64_t parameters = 0;
  Engine* engine = nullptr;                         // owned by the composition root; outlives every hold
  const TextCodec* codec = nullptr;                 // likewise
  const ConstraintCompiler* constraints = nullptr;  // likewise; null: structured output is refused
  std::string fingerprint = {};                     // of build, CPU path and model file: equal ones and equal seeds mean equal bytes
  Pooling pooling = Pooling::kLast;                 // of embeddings
  std::size_t most_waiting = std::numeric_limits<std::size_t>::max();  // sequences in the engine's queue: a request has no more
  RequestDefaults defaults = {};
  VectorRules vectors = {};
  ClassRules classes = {};
  PairForm pairs = PairForm::kPair;
  const ImageReader* images = nullptr;  // owned as the engine; null: it reads text alone
  DraftMeans drafts = {};
  bool generates = true;                                    // false: it reads whole texts and makes no answer
  std::uint64_t bytes = 0;                                  // of its weights
  std::string weight_type = {};                             // of most of them, such as Q4_K; empty: not known
  Adapters* adapters = nullptr;                             // whose base it is, owned as the engine; null: it can have none
  AdapterUse adapter = {};                                  // that its requests use: adapters, or newer weights, or both
  bool is_adapted = false;                                  // by adapters of that base
  LiveWeights* weights = nullptr;                           // owned as the engine; null: they stay what they are
  std::function<std::vector<RankSeconds>()> ranks = {};     // by rank; null: one process computes it
  std::shared_ptr<const ModelSettings> settings = nullptr;  // what its maker wants, for Ollama's routes; null: nothing
};

// A model in use: while one lives, it is not unloaded. Loop only; the model itself may be read on any thread.
using ModelHold = std::shared_ptr<const ServedModel>;

// The models that are loaded, by name. A plain value, valid until the loop goes on.
class ModelDirectory {
 public:
  ModelDirectory() = default;
  // With `any_name` a name that no model has stands for the first one.
  explicit ModelDirectory(std::vector<const ServedModel*> models, bool any_name = false, std::vector<const ServedNetwork*> networks = {})
      : models_(std::move(models)), networks_(std::move(networks)), any_name_(any_name) {}

  // The model of that id, or the only one that it may stand for (model_name.h); the first one for "" and "default". Null: there is none.
  const ServedModel* find(std::string_view name) const {
    if (models_.empty()) return nullptr;
    if (name.empty() || name == "default") return models_.front();
    const ServedModel* like = nullptr;
    std::size_t count = 0;
    for (const ServedModel* model : models_) {
      if (model->id == name) return model;
      if (!may_name(name, model->id)) continue;
      like = model;
      ++count;
    }
    if (count == 1) return like;
    return any_name_ ? models_.front() : nullptr;
  }

  std::span<const ServedModel* const> all() const { return models_; }
  bool empty() const { return models_.empty(); }

  // What answers /v1/predict, and nothing else.
  std::span<const ServedNetwork* const> networks() const { return networks_; }
  // By its whole id. Null: there is none.
  const ServedNetwork* find_network(std::string_view id) const {
    for (const ServedNetwork* network : networks_)
      if (network->id == id) return network;
    return nullptr;
  }

 private:
  std::vector<const ServedModel*> models_;      // not null
  std::vector<const ServedNetwork*> networks_;  // likewise; they outlive every session
  bool any_name_ = false;
};

class ModelHost;
class Pausable;

// kLate: ready, but for a step that takes too long; requests are still accepted. kLeaving: likewise, but the
// server is going to shut down.
enum class ServiceState { kLoading, kReady, kNoModel, kLate, kLeaving, kDraining, kFailed };

// One per process; the composition root writes it, sessions read it.
struct ServiceStatus {
  ServiceState state = ServiceState::kLoading;
  std::string reason;           // for /readyz while not ready
  ModelDirectory models;        // empty until loaded
  ModelHost* host = nullptr;    // of models that can be loaded besides; null: there are only these, which outlive every session
  Pausable* compute = nullptr;  // of all of them; null: there is nothing to compute yet
};

}  // namespace braid
