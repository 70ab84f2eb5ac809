// Work on texts that is too long for the loop.
#pragma once

#include "braid/result.h"
#include "braid/signal.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>

namespace braid::net {

struct CodecJob;

// Whether somebody still wants what is waited for. Loop only; outlives the wait.
class Abandonment {
 public:
  // A job whose turn has not come does not run, and its wait ends at once; one that runs ends as ever.
  void abandon();
  bool is_abandoned() const { return abandoned_; }

  // While it lives, abandoning wakes who waits for `signal`, which outlives it.
  class Wait {
   public:
    Wait(Abandonment& abandonment, Signal& signal) : abandonment_(abandonment) { abandonment_.signal_ = &signal; }
    ~Wait() { abandonment_.signal_ = nullptr; }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Abandonment& abandonment_;
  };

 private:
  friend boost::asio::awaitable<Result<void>> run_codec_job(Service& service, Abandonment& abandonment, std::function<void()> work);

  bool abandoned_ = false;
  std::shared_ptr<CodecJob> job_;  // while one waits
  Signal* signal_ = nullptr;       // likewise of what is no job
};

// Runs `work` on the codec worker and returns when it has ended; what `work` refers to outlives that. kOverloaded when too many
// such jobs are there already, kCancelled when it has been abandoned before its turn came: `work` does not run then. Loop only.
boost::asio::awaitable<Result<void>> run_codec_job(Service& service, Abandonment& abandonment, std::function<void()> work);

}  // namespace braid::net
