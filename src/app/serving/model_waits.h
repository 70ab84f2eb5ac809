// How who waits for a model is answered.
#pragma once

#include "braid/model_host.h"

#include <memory>
#include <utility>

namespace braid::app {

inline Error leaving() { return {ErrorCode::kDraining, "the server is shutting down", {}}; }

inline void answer(const std::weak_ptr<ModelWait>& waits, const Result<ModelHold>& result) {
  const std::shared_ptr<ModelWait> wait = waits.lock();
  if (wait == nullptr || wait->result) return;
  wait->result = result;
  wait->arrived.notify();
}

inline std::shared_ptr<ModelWait> answered(Result<ModelHold> result) {
  auto wait = std::make_shared<ModelWait>();
  wait->result = std::move(result);
  return wait;
}

}  // namespace braid::app
