#include <fmt/format.h>
#include <net/codec_jobs.h>
#include <net/count.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace braid::net {
namespace {

namespace asio = boost::asio;

// Pointers: who waits for the job holds what they point to.
asio::awaitable<bool> run(const std::function<void()>* work, const std::atomic<bool>* abandoned) {
  if (*abandoned) co_return false;
  (*work)();
  co_return true;
}

}  // namespace

asio::awaitable<Result<void>> run_codec_job(Service& service, const std::atomic<bool>& abandoned, std::function<void()> work) {
  const std::size_t limit = service.options.max_codec_jobs;
  if (service.codec_jobs >= limit)
    co_return Error{ErrorCode::kOverloaded, fmt::format("{} long requests are being read already; try again later", limit), ""};
  const Count count(service.codec_jobs);
  auto job = run(&work, &abandoned);
  const bool done = co_await asio::co_spawn(service.codec_worker.get_executor(), std::move(job), asio::use_awaitable);
  if (!done) co_return Error{ErrorCode::kCancelled, "the client has gone", ""};
  co_return Result<void>();
}

}  // namespace braid::net
