// The weights of a language model that is served, and newer ones in their place.
#pragma once

#include "app/serving/model_adapters.h"
#include "app/serving/model_revisions.h"
#include "app/serving/turns.h"
#include "braid/weights.h"
#include "model/language_model.h"
#include "model/loaded_tensors.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::app {

// Loop only, but for the making of revisions. All arguments outlive it; who waits for an update may not.
class ModelWeights final : public LiveWeights {
 public:
  struct Hooks {
    std::function<void(const Error& reason)> abort;  // ends all requests that run
    std::function<void()> keep;                      // has them go on with what is current now
  };

  // `revision`: of the weights that the model was loaded with.
  ModelWeights(boost::asio::thread_pool& workers, model::LanguageModel& model, std::shared_ptr<const model::LoadedTensors> tensors,
               std::string revision, ModelRevisions& revisions, ModelAdapters& adapters, Hooks hooks);

  const WeightFacts& facts() const override { return facts_; }
  void name_version(std::string version) override { facts_.version = std::move(version); }
  boost::asio::awaitable<Result<WeightFacts>> update(WeightSource source, UpdateMode mode) override;
  boost::asio::awaitable<Result<std::vector<TensorDigest>>> digests() override;

 private:
  using Digests = std::map<std::string, std::string>;  // of tensors that are not those that were loaded, by name

  std::string revision_of(const Digests& digests) const;

  boost::asio::thread_pool& workers_;
  model::LanguageModel& model_;
  const std::shared_ptr<const model::LoadedTensors> tensors_;
  const std::string first_;
  ModelRevisions& revisions_;
  ModelAdapters& adapters_;
  const Hooks hooks_;
  Digests digests_;
  WeightFacts facts_;
  Turns updates_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // asked after a wait
};

}  // namespace braid::app
