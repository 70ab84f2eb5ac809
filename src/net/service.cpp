#include <fmt/format.h>
#include <net/service.h>

namespace braid::net {

std::string Service::new_id(std::string_view prefix) {
  const std::uint64_t high = random();
  const std::uint64_t low = random();
  return fmt::format("{}-{:016x}{:08x}", prefix, high, low >> 32U);
}

}  // namespace braid::net
