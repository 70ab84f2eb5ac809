#include "net/service/codec_jobs.h"

#include "net/service/count.h"

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cassert>
#include <cstddef>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <utility>

namespace braid::net {

namespace asio = boost::asio;

// One job, and the memory of its way back: a worker that found no memory can still say so.
struct CodecJob {
  static constexpr std::size_t kReturnBytes = 128;

  CodecJob(Service& service, std::function<void()> what)
      : loop(service.loop), work(std::move(what)), ended(loop, asio::steady_timer::time_point::max()) {}

  // Whoever is first has it: the worker, which then runs it, or the loop, which then leaves it.
  bool claim() { return !claimed.exchange(true); }

  asio::io_context& loop;
  std::function<void()> work;  // refers to what the waiting coroutine holds: for the one who has claimed the job
  std::atomic<bool> claimed{false};
  bool ran = false;
  std::exception_ptr failure;
  bool over = false;         // on the loop from here: it has returned or been abandoned
  asio::steady_timer ended;  // never expires: cancelled when it is over
  alignas(std::max_align_t) std::array<std::byte, kReturnBytes> memory;

  void end() {
    over = true;
    ended.cancel();
  }
};

namespace {

template <class T>
struct ReturnAllocator {
  using value_type = T;

  std::shared_ptr<CodecJob> job;

  explicit ReturnAllocator(std::shared_ptr<CodecJob> owner) : job(std::move(owner)) {}
  template <class U>
  ReturnAllocator(const ReturnAllocator<U>& other) : job(other.job) {}

  T* allocate(std::size_t count) const {
    static_assert(sizeof(T) <= CodecJob::kReturnBytes && alignof(T) <= alignof(std::max_align_t));
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
  std::shared_ptr<CodecJob> job;

  using allocator_type = ReturnAllocator<std::byte>;
  allocator_type get_allocator() const { return allocator_type(job); }

  void operator()() const { job->end(); }
};

// On the worker: an exception that leaves it would end the process.
void run(std::shared_ptr<CodecJob> job) {
  if (!job->claim()) return;
  try {
    job->work();
    job->ran = true;
  } catch (...) {
    job->failure = std::current_exception();
  }
  asio::io_context& loop = job->loop;
  asio::post(loop, Return{std::move(job)});
}

}  // namespace

void Abandonment::abandon() {
  abandoned_ = true;
  if (job_ != nullptr && job_->claim()) job_->end();
  if (signal_ != nullptr) signal_->notify();
}

asio::awaitable<Result<void>> run_codec_job(Service& service, Abandonment& abandonment, std::function<void()> work) {
  const std::size_t limit = service.options.max_codec_jobs;
  if (service.codec_jobs >= limit)
    co_return Error{ErrorCode::kOverloaded, fmt::format("{} long requests are being read already; try again later", limit), ""};
  const Error unwanted = {ErrorCode::kCancelled, "nobody waits for the answer any more", ""};
  if (abandonment.abandoned_) co_return unwanted;
  const Count count(service.codec_jobs);
  const auto job = std::make_shared<CodecJob>(service, std::move(work));
  abandonment.job_ = job;
  asio::post(service.codec_worker, [job]() mutable { run(std::move(job)); });
  while (!job->over) {
    boost::system::error_code cancelled;
    co_await job->ended.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
  abandonment.job_ = nullptr;
  if (job->failure) std::rethrow_exception(job->failure);
  if (!job->ran) co_return unwanted;
  co_return Result<void>();
}

}  // namespace braid::net
