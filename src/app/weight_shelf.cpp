#include "app/weight_shelf.h"

#include "app/embedded_model.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace braid::app {

std::string weights_key(const ModelOptions& options, const kernels::KernelTable& table) {
  std::string file(kEmbeddedModelName);
  if (!options.model.empty() && options.model != kEmbeddedModelName) {
    struct stat found {};
    if (::stat(options.model.c_str(), &found) != 0) return {};
    file = fmt::format("{}:{}:{}:{}.{}", found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
  }
  const int type = options.float_type ? static_cast<int>(*options.float_type) : -1;
  return fmt::format("{} {} {} {} {} {}", file, fmt::ptr(&table), type, options.fast_weights, options.context.value_or(0),
                     static_cast<int>(options.huge_pages));
}

}  // namespace braid::app
