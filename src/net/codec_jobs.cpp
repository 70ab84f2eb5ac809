#include <fmt/format.h>
#include <net/codec_jobs.h>
#include <net/count.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cassert>
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

namespace braid::net {
namespace {

namespace asio = boost::asio;

// One job, and the memory of its way back: a worker that found no memory can still say so.
struct Job {
  static constexpr std::size_t kReturnBytes = 128;

  Job(Service& service, const std::atomic<bool>& gone, std::function<void()> what)
      : loop(service.loop), work(std::move(what)), abandoned(gone), ended(loop, asio::steady_timer::time_point::max()) {}

  asio::io_context& loop;
  std::function<void()> work;          // it and `abandoned` refer to what the waiting coroutine holds
  const std::atomic<bool>& abandoned;
  bool ran = false;
  std::exception_ptr failure;
  bool returned = false;     // on the loop from here
  asio::steady_timer ended;  // never expires: cancelled when the job has returned
  alignas(std::max_align_t) std::array<std::byte, kReturnBytes> memory;
};

template <class T>
struct ReturnAllocator {
  using value_type = T;

  std::shared_ptr<Job> job;

  explicit ReturnAllocator(std::shared_ptr<Job> owner) : job(std::move(owner)) {}
  template <class U>
  ReturnAllocator(const ReturnAllocator<U>& other) : job(other.job) {}

  T* allocate(std::size_t count) const {
    static_assert(sizeof(T) <= Job::kReturnBytes && alignof(T) <= alignof(std::max_align_t));
    assert(count == 1);
    static_cast<void>(count);
    return reinterpret_cast<T*>(job->memory.data());
  }
  void deallocate(T*, std::size_t) const {}

  template <class U>
  bool operator==(const ReturnAllocator<U>& other) const {
    return job == other.job;
  }
};

struct Return {
  std::shared_ptr<Job> job;

  using allocator_type = ReturnAllocator<std::byte>;
  allocator_type get_allocator() const { return allocator_type(job); }

  void operator()() const {
    job->returned = true;
    job->ended.cancel();
  }
};

// On the worker: an exception that leaves it would end the process.
void run(std::shared_ptr<Job> job) {
  try {
    if (!job->abandoned) {
      job->work();
      job->ran = true;
    }
  } catch (...) {
    job->failure = std::current_exception();
  }
  asio::io_context& loop = job->loop;
  asio::post(loop, Return{std::move(job)});
}

}  // namespace

asio::awaitable<Result<void>> run_codec_job(Service& service, const std::atomic<bool>& abandoned, std::function<void()> work) {
  const std::size_t limit = service.options.max_codec_jobs;
  if (service.codec_jobs >= limit)
    co_return Error{ErrorCode::kOverloaded, fmt::format("{} long requests are being read already; try again later", limit), ""};
  const Count count(service.codec_jobs);
  const auto job = std::make_shared<Job>(service, abandoned, std::move(work));
  asio::post(service.codec_worker, [job] { run(job); });
  while (!job->returned) {
    boost::system::error_code cancelled;
    co_await job->ended.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  if (job->failure) std::rethrow_exception(job->failure);
  if (!job->ran) co_return Error{ErrorCode::kCancelled, "the client has gone", ""};
  co_return Result<void>();
}

}  // namespace braid::net
