// The one way into the small networks that are served. Everything here belongs to the loop's thread.
#pragma once

#include "braid/policy.h"
#include "braid/result.h"
#include "braid/signal.h"
#include "braid/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid {

// A prediction that waits or runs. Destroying it cancels it.
class PendingPrediction {
 public:
  virtual ~PendingPrediction() = default;

  // The outputs in the order in which they were asked for, once; nullopt: they are not there yet.
  virtual std::optional<Result<std::vector<Tensor>>> try_take() = 0;

  // What computed the outputs, where that is not the revision that was current when it was submitted.
  virtual std::optional<std::string> newer_revision() const { return std::nullopt; }

  // Whether it has left the queue; it may come back there once.
  virtual bool started() const { return true; }

  // What destroying it does, at once and also while it is waited for: it ends with kCancelled, unless it has ended.
  virtual void cancel() = 0;

  // Notified when they are. It has one waiter.
  virtual Signal& arrived() = 0;
};

struct PredictorStats {
  std::uint64_t finished = 0;
  std::uint64_t failed = 0;
  std::uint64_t refused = 0;      // because too many waited
  std::uint64_t evaluations = 0;  // begun, each of one prediction or of several together
  std::uint32_t waiting = 0;
  std::uint32_t running = 0;
};

class Predictor {
 public:
  virtual ~Predictor() = default;

  // The same through all revisions of the weights; any thread.
  virtual std::span<const TensorSignature> inputs() const = 0;
  virtual std::span<const TensorSignature> outputs() const = 0;

  // `given` in the order of inputs(); `wanted` are places in outputs(). kInvalidArgument: an input is missing, or its type or shape is not
  // the declared one (the path is "inputs.NAME"); kOverloaded: too many wait; kDraining: the server is shutting down. `priority`: as
  // GenerationRequest's.
  virtual Result<std::unique_ptr<PendingPrediction>> submit(std::vector<std::optional<Tensor>> given, std::vector<std::size_t> wanted,
                                                            std::int32_t priority) = 0;

  virtual PredictorStats stats() const { return {}; }

  // Null: its outputs are no policy's.
  virtual const PolicyForm* policy() const { return nullptr; }

  // Only of a policy; as submit(). The outputs are the actions, int64 or, of Gaussians, float32, shaped as the
  // policy's logits or means without their last dimension where a row has one action; their log-probabilities, one for a row; the values, if
  // the policy has them; and its states in their order. kInvalidArgument also: there are as many seeds as rows, or one ("seed").
  virtual Result<std::unique_ptr<PendingPrediction>> act(std::vector<std::optional<Tensor>> given, ActionDraw draw, std::int32_t priority) {
    (void)given;
    (void)draw;
    (void)priority;
    return invalid_argument("the network is no policy", "model");
  }
};

class LiveWeights;

struct ServedNetwork {
  std::string id;            // the folder's name, or --alias
  std::int64_t created = 0;  // Unix seconds of loading
  std::int64_t parameters = 0;
  std::string revision;            // of what is submitted now
  Predictor* predictor = nullptr;  // owned by the composition root; outlives every session
  LiveWeights* weights = nullptr;  // likewise; null: they stay what they are
};

}  // namespace braid
