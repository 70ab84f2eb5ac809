// What the HTTP side sees of the model that is being served. Loop only.
#pragma once

#include "braid/constraint.h"
#include "braid/engine.h"
#include "braid/text_codec.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace braid {

struct ServedModel {
  std::string id;                   // the file's name without .gguf and shard suffix, or --alias
  std::int64_t created = 0;         // Unix seconds of loading
  std::int32_t context_length = 0;  // tokens, prompt and answer together
  std::string architecture;
  std::int64_t parameters = 0;
  Engine* engine = nullptr;                         // owned by the composition root; outlives every session
  const TextCodec* codec = nullptr;                 // likewise
  const ConstraintCompiler* constraints = nullptr;  // likewise; null: structured output is refused
  std::string fingerprint = {};                     // of build, CPU path and model file: equal ones and equal seeds mean equal bytes
  std::size_t most_waiting = std::numeric_limits<std::size_t>::max();  // sequences in the engine's queue: a request has no more
};

// kLate: ready, but for a step that takes too long; requests are still accepted. kLeaving: likewise, but the
// server is going to shut down.
enum class ServiceState { kLoading, kReady, kNoModel, kLate, kLeaving, kDraining, kFailed };

// One per process; the composition root writes it, sessions read it.
struct ServiceStatus {
  ServiceState state = ServiceState::kLoading;
  std::string reason;                  // for /readyz while not ready
  const ServedModel* model = nullptr;  // null until loaded
};

}  // namespace braid
