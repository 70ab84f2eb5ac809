#include "net/generation/fetched_images.h"

#include "net/service/registry_jobs.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace braid::net {

namespace asio = boost::asio;

bool has_unfetched(const GenerationCall& call) {
  return std::ranges::any_of(call.images, [](const wish::ShownImage& image) { return !image.url.empty(); });
}

asio::awaitable<Result<void>> fetch_images(Service& service, Abandonment& abandonment, GenerationCall& call) {
  for (wish::ShownImage& image : call.images) {
    if (image.url.empty()) continue;
    if (!service.options.fetch_image)
      co_return invalid_argument(
          fmt::format("'{}' is an address, and this server fetches no images (--image-host): give it as a data: URL", image.path),
          image.path);
    if (abandonment.is_abandoned()) co_return Error{ErrorCode::kCancelled, "the client went away", ""};
    const auto fetched = std::make_shared<std::optional<Result<std::string>>>();
    std::function<void()> work = [fetched, url = image.url, fetch = service.options.fetch_image] { fetched->emplace(fetch(url)); };
    co_await run_registry_job(service, std::move(work));
    if (!*fetched) co_return Error{ErrorCode::kInternal, "the request failed inside the server", ""};
    if (!**fetched)
      co_return invalid_argument(fmt::format("'{}' could not be fetched: {}", image.path, (*fetched)->error().message), image.path);
    if ((*fetched)->value().empty()) co_return invalid_argument(fmt::format("'{}' names an empty file", image.path), image.path);
    image.file = std::move((*fetched)->value());
    image.url.clear();
  }
  co_return Result<void>();
}

}  // namespace braid::net
