// What rows of a model's steps may name: revisions of its weights, each with the adapters of a request.
#pragma once

#include "app/serving/turns.h"
#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/signal.h"
#include "model/adapters/adapter.h"
#include "model/decoder.h"
#include "model/language_model.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::app {

// Loop only. The model and the workers outlive it; what it has given out may not.
class ModelRevisions {
 public:
  // A revision of the weights.
  struct Base {
    std::shared_ptr<const model::Decoder> decoder;
    std::string revision;  // empty: that which was loaded
  };

  ModelRevisions(boost::asio::thread_pool& workers, model::LanguageModel& model);
  ~ModelRevisions();
  ModelRevisions(const ModelRevisions&) = delete;
  ModelRevisions& operator=(const ModelRevisions&) = delete;

  // That new requests get.
  const Base& base() const;
  void replace_base(Base base);

  // Returns when nobody uses an older one any more. One caller at a time; it may be destroyed meanwhile.
  boost::asio::awaitable<void> older_gone() const;

  // The base with these adapters, whose revision `adapters` is; none: the base alone. Its index stands for them while the lease lives.
  // kOverloaded: too many are in use.
  Result<AdapterUse> use(std::string_view adapters, std::vector<model::AdapterSet::Part> parts);

  // Of whatever changes what may be used: loads of adapters, updates of the weights.
  Turns turns;

 private:
  struct State;
  class Lease;

  const std::shared_ptr<State> state_;
  std::map<std::string, std::weak_ptr<const Lease>, std::less<>> leases_;  // by revision, of what is in use
};

}  // namespace braid::app
