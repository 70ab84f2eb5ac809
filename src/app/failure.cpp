#include "app/failure.h"

#include "app/memory.h"

#include <boost/system/system_error.hpp>
#include <fmt/format.h>
#include <system_error>

namespace braid::app {
namespace {

bool is_of_a_thread_that_was_refused(const std::exception& failure) {
  if (const auto* const ours = dynamic_cast<const std::system_error*>(&failure))
    return ours->code() == std::errc::resource_unavailable_try_again;
  const auto* const asios = dynamic_cast<const boost::system::system_error*>(&failure);
  return asios != nullptr && asios->code() == boost::system::errc::resource_unavailable_try_again;
}

}  // namespace

std::string explain_failure(const std::exception& failure) {
  if (!is_of_a_thread_that_was_refused(failure)) return fmt::format("internal error: {}", failure.what());
  const auto mapping = mapping_limit();  // a thread's stack is mapped
  return fmt::format("{}: for more threads raise {}ulimit -u or the control group's pids.max, or lower --threads", failure.what(),
                     mapping ? *mapping + ", where their stacks count, " : "");
}

}  // namespace braid::app
