// Models that come and go while a server runs, as the HTTP side sees them. Everything here belongs to the loop's thread.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/signal.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

// How long a model that nobody uses stays loaded: 0 ends it with its last request.
using KeepAlive = std::chrono::milliseconds;
inline constexpr KeepAlive kKeepForever = KeepAlive::max();  // until another one needs its memory

// kAsleep: unloaded, and loaded by nothing but wake().
enum class ModelState { kUnloaded, kLoading, kLoaded, kUnloading, kAsleep };

// One that can be asked for, loaded or not.
struct KnownModel {
  std::string id;
  std::vector<std::string> aliases = {};  // other names of the same
  std::string source = {};                // a GGUF file or a folder; empty: within the binary
  std::uint64_t bytes = 0;                // of its files
  std::int64_t modified = 0;              // Unix seconds, of its files
  ModelState state = ModelState::kUnloaded;
  const ServedModel* loaded = nullptr;                                // valid until the loop goes on
  std::uint64_t memory = 0;                                           // bytes that it has taken: weights, KV pool and what it computes with
  std::optional<std::chrono::system_clock::time_point> expires = {};  // of a loaded one that is to be unloaded then
  std::string failure = {};                                           // why it could not be loaded the last time it was tried
};

struct ModelProgress {
  std::string step;         // in one or two words
  std::uint64_t done = 0;   // bytes
  std::uint64_t total = 0;  // 0: not known
};

// Somebody's wait for what has been asked of a model. Destroying it ends the wait and nothing else.
struct ModelWait {
  std::optional<Result<ModelHold>> result;  // empty until then; of an unloading a null hold
  ModelProgress progress = {};
  Signal arrived;  // notified when either has changed. It has one waiter.
};

class ModelHost {
 public:
  virtual ~ModelHost() = default;

  // In the order of their ids, those of the command line first.
  virtual std::vector<KnownModel> known() const = 0;

  virtual bool empty() const { return known().empty(); }

  // The id of the one that is meant: by its id, an alias, a name that may stand for it (model_name.h), or the beginning of one only. "" and
  // "default" are the first one. kNotFound with the nearest names; kInvalidArgument with those between which it does not decide.
  virtual Result<std::string> find(std::string_view name) const = 0;

  // In use, if it is loaded; null otherwise, and for a name that find() refuses. `keep_alive` holds from now on.
  virtual ModelHold take(std::string_view name, std::optional<KeepAlive> keep_alive = {}) = 0;

  // The same, loading it if need be, and looking once more for one that is not known. Errors are find()'s; kModelNotLoaded with retry_after:
  // there is no room, or it takes too long; the cause where loading fails; kOverloaded; kDraining.
  virtual std::shared_ptr<ModelWait> ask(std::string name, std::optional<KeepAlive> keep_alive = {}) = 0;

  // When nobody uses it any more. It stays known.
  virtual std::shared_ptr<ModelWait> unload(std::string name) = 0;

  // unload() of all that are loaded, or of the one that is named; nothing but wake() loads them. `now`: their answers are ended.
  virtual std::shared_ptr<ModelWait> sleep(std::string name, bool now) = 0;
  // Those that sleep, or the one that is named, are loaded again.
  virtual std::shared_ptr<ModelWait> wake(std::string name) = 0;
};

}  // namespace braid
