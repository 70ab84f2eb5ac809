// The weights of a language model that is served, and newer ones in their place.
#pragma once

#include "app/serving/model_adapters.h"
#include "app/serving/model_revisions.h"
#include "app/serving/running_requests.h"
#include "app/serving/turns.h"
#include "braid/weights.h"
#include "files/byte_source.h"
#include "model/language_model.h"
#include "model/loaded_tensors.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace braid::app {

// The newer weights of a model whose group of processes was lost, for the one in its place. Immutable; any thread.
struct KeptWeights {
  struct File {
    std::shared_ptr<const files::ByteSource> bytes;
    bool is_partial = false;
    std::set<std::string> tensors;  // that no later one has
  };
  std::string base;  // revision of the weights that it was loaded with
  std::vector<File> files = {};
  WeightFacts facts = {};

  std::uint64_t bytes() const;
};

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

  // Where others compute the model, who may be lost: what brings others to the same revision. Null: to none but what was loaded.
  std::shared_ptr<const KeptWeights> keep() const;
  std::uint64_t kept_bytes() const { return kept_ != nullptr ? kept_->bytes() : 0; }
  // Before anybody uses the model. Weights of other files than those that it was loaded from are left out, which the log tells; an error: it
  // is to serve nobody.
  boost::asio::awaitable<Result<void>> restore(std::shared_ptr<const KeptWeights> kept);

 private:
  using Digests = std::map<std::string, std::string>;  // of tensors that are not those that were loaded, by name
  using Bytes = std::shared_ptr<const files::ByteSource>;

  // `bytes`: of the source, if they have been read before.
  boost::asio::awaitable<Result<WeightFacts>> replace(WeightSource source, Bytes bytes, UpdateMode mode);
  std::shared_ptr<const KeptWeights> kept_with(Bytes bytes, bool is_partial, const Digests& its_digests) const;

  std::string revision_of(const Digests& digests) const;

  boost::asio::thread_pool& workers_;
  model::LanguageModel& model_;
  const std::shared_ptr<const model::LoadedTensors> tensors_;
  const std::string first_;
  ModelRevisions& revisions_;
  ModelAdapters& adapters_;
  const RunningRequests& running_;
  Digests digests_;
  std::shared_ptr<const KeptWeights> kept_;
  WeightFacts facts_;
  Turns updates_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // asked after a wait
};

}  // namespace braid::app
