#include "app/embedded_model.h"

#include <span>

// Defined in embedded_model.S.
extern "C" {
[[gnu::visibility("hidden")]] extern const std::byte braid_embedded_model[];
[[gnu::visibility("hidden")]] extern const std::byte braid_embedded_model_end[];
}

namespace braid::app {

std::shared_ptr<const files::ByteSource> embedded_model() {
  const std::span<const std::byte> bytes(braid_embedded_model, braid_embedded_model_end);
  if (bytes.empty()) return nullptr;
  return files::linked_bytes(bytes, kEmbeddedModelName);
}

}  // namespace braid::app
