#include "app/serving/network_weights.h"

#include "app/clock.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace braid::app {

namespace asio = boost::asio;

NetworkWeights::NetworkWeights(asio::thread_pool& workers, NetworkPredictor& predictor, NetworkBase base, NetworkRevision first,
                               ServedNetwork& served)
    : workers_(workers), predictor_(predictor), base_(std::move(base)), current_(std::make_shared<const NetworkRevision>(std::move(first))),
      served_(served) {
  facts_.revision = current_->digest;
  facts_.created = now_in_unix_seconds();
}

asio::awaitable<Result<WeightFacts>> NetworkWeights::update(WeightSource source, UpdateMode mode) {
  const std::weak_ptr<char> alive = alive_;
  const Error gone{ErrorCode::kDraining, "the server is shutting down", {}};
  asio::awaitable<Turns::Turn> taking = turns_.take();
  const Turns::Turn turn = co_await std::move(taking);
  if (alive.expired()) co_return gone;
  const std::string expected = source.revision;
  // Named, because g++ 12 destroys some temporaries of such an expression twice.
  auto making = [](NetworkBase base, std::shared_ptr<const NetworkRevision> current,
                   WeightSource from) -> asio::awaitable<Result<NetworkRevision>> { co_return newer_revision(base, *current, from); };
  asio::awaitable<Result<NetworkRevision>> made = making(base_, current_, std::move(source));
  Result<NetworkRevision> newer = co_await asio::co_spawn(workers_, std::move(made), asio::use_awaitable);
  if (alive.expired()) co_return gone;
  if (!newer) co_return newer.error();
  if (const auto other = other_revision(expected, newer->digest)) co_return *other;
  auto revision = std::make_shared<const NetworkRevision>(std::move(*newer));
  WeightFacts facts{revision->digest, facts_.version, now_in_unix_seconds(), facts_.updates + 1};
  WeightFacts current = facts;
  std::string shown = facts.revision;
  // All that could fail is done, but to tell those that wait.
  current_ = std::move(revision);
  facts_ = std::move(current);
  served_.revision = std::move(shown);
  predictor_.replace(current_->network, facts_.revision, mode);
  co_return std::move(facts);
}

asio::awaitable<Result<std::vector<TensorDigest>>> NetworkWeights::digests() {
  auto adding = [](std::shared_ptr<const NetworkRevision> revision) -> asio::awaitable<std::vector<TensorDigest>> {
    co_return digests_of(*revision);
  };
  asio::awaitable<std::vector<TensorDigest>> added = adding(current_);
  co_return co_await asio::co_spawn(workers_, std::move(added), asio::use_awaitable);
}

}  // namespace braid::app
