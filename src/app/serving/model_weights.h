// The weights of a language model that is served, and newer ones in their place.
#pragma once

#include "app/serving/model_adapters.h"
#include "app/serving/model_revisions.h"
#include "app/serving/running_requests.h"
#include "app/serving/turns.h"
#include "braid/weights.h"
#include "model/language_model.h"
#include "model/loaded_tensors.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::app {

// Loop only, but for the making of revisions. All arguments outlive it; who waits for an update may not.
class ModelWeights final : public LiveWeights {
 public:
  // `revision`: of the weights that the model was loaded with.
  ModelWeights(boost::asio::thread_pool& workers, model::LanguageModel& model, std::shared_ptr<const model::LoadedTensors> tensors,
               std::string revision, ModelRevisions& revisions, ModelAdapters& adapters, const RunningRequests& running);

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
  const RunningRequests& running_;
  Digests digests_;
  WeightFacts facts_;
  Turns updates_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // asked after a wait
};

}  // namespace braid::app
