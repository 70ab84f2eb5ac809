#include "app/serving/background.h"

#include <boost/asio/post.hpp>
#include <new>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace braid::app {

namespace {

constexpr int kBackgroundNice = 10;

}  // namespace

void give_little_weight(boost::asio::thread_pool& pool) {
  boost::asio::post(pool, [] { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kBackgroundNice); });
}

std::unique_ptr<boost::asio::thread_pool> background_worker() {
  auto worker = std::make_unique<boost::asio::thread_pool>(1);
  give_little_weight(*worker);
  return worker;
}

void discard_on(boost::asio::thread_pool& pool, std::shared_ptr<const void>&& unused) noexcept {
  try {
    boost::asio::post(pool, [moved = std::move(unused)] {});  // a copy here might be the last one
  } catch (const std::bad_alloc&) {
    // It has ended with what was to be posted.
  }
}

}  // namespace braid::app
