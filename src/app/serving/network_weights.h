// The revisions of a small network that is served.
#pragma once

#include "app/network_folder.h"
#include "app/serving/network_predictor.h"
#include "app/serving/turns.h"
#include "braid/predictor.h"
#include "braid/weights.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <string>
#include <vector>

namespace braid::app {

// Loop only, but for the making of revisions. The workers, the predictor and the network's entry outlive it; who waits for an update may not.
class NetworkWeights final : public LiveWeights {
 public:
  NetworkWeights(boost::asio::thread_pool& workers, NetworkPredictor& predictor, NetworkBase base, NetworkRevision first,
                 ServedNetwork& served);

  const WeightFacts& facts() const override { return facts_; }
  void name_version(std::string version) override { facts_.version = std::move(version); }
  boost::asio::awaitable<Result<WeightFacts>> update(WeightSource source, UpdateMode mode) override;
  boost::asio::awaitable<Result<std::vector<TensorDigest>>> digests() override;

 private:
  boost::asio::thread_pool& workers_;
  NetworkPredictor& predictor_;
  const NetworkBase base_;
  std::shared_ptr<const NetworkRevision> current_;
  ServedNetwork& served_;
  WeightFacts facts_;
  Turns turns_;                                                   // of updates
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // asked after a wait
};

}  // namespace braid::app
