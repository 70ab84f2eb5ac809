// What need not be done at once, on threads of little weight.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <memory>

namespace braid::app {

// From now on the pool's only thread gets a tenth of a processor where the compute threads want them all, whose steps would wait for it
// otherwise.
void give_little_weight(boost::asio::thread_pool& pool);

// A thread of that kind.
std::unique_ptr<boost::asio::thread_pool> background_worker();

// Lets go of what holds much memory there, unless there is none left to ask for that.
void discard_on(boost::asio::thread_pool& pool, std::shared_ptr<const void>&& unused) noexcept;

}  // namespace braid::app
