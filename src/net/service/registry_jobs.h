// Work on the registry, which waits for disks and other servers: never on the loop.
#pragma once

#include "braid/model_registry.h"
#include "braid/result.h"
#include "net/service/service.h"

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace braid::net {

inline constexpr std::uint32_t kMostTransfers = 8;  // pulls, pushes and creations at once

// The registry of this server; kNotFound where it has none.
Result<ModelRegistry*> registry_of(const Service& service);

// Runs `work` on a thread of the registry's and returns when it has ended. It owns all that it refers to.
boost::asio::awaitable<void> run_registry_job(Service& service, std::function<void()> work);

// The same with what it gives. An exception becomes kInternal.
template <class T>
boost::asio::awaitable<Result<T>> ask_registry(Service& service, std::function<Result<T>(ModelRegistry&)> question) {
  const Result<ModelRegistry*> registry = registry_of(service);
  if (!registry) co_return registry.error();
  const auto answer = std::make_shared<std::optional<Result<T>>>();
  std::function<void()> work = [answer, asked = *registry, question = std::move(question)] { answer->emplace(question(*asked)); };
  co_await run_registry_job(service, std::move(work));
  if (!*answer) co_return Error{ErrorCode::kInternal, "the request failed inside the server", ""};
  co_return std::move(**answer);
}

// Something long that tells how far it is. Loop only, but for what says otherwise.
struct RegistryTask {
  std::deque<TransferProgress> news;     // not yet told, the latest of each file
  std::optional<Result<void>> result;    // when it has ended
  std::atomic<bool> is_unwanted{false};  // any thread: it ends soon then
  Signal arrived;                        // notified when there is any of these
};

// Begins `work`; kOverloaded when there are too many already. `service` outlives it: the server waits for such work at its end.
Result<std::shared_ptr<RegistryTask>> begin_registry_task(Service& service,
                                                          std::function<Result<void>(ModelRegistry&, const ProgressSink&)> work);

}  // namespace braid::net
