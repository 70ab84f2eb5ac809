#include "app/serving/change_record.h"

#include "net/peers/change_text.h"
#include "registry/durable_file.h"
#include "registry/http_client.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <spdlog/spdlog.h>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace braid::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".change";
constexpr std::size_t kMostChange = (std::size_t{1} << 30) + (std::size_t{1} << 20);  // bytes: the longest body, and what stands before it

// The node is what another server says that it is called.
std::string file_of(const net::ChangeKey& key) {
  return fmt::format("{:020}-{}{}", key.number, registry::percent_encoded(key.node), kEnding);
}

Result<net::Change> read_change(const std::string& path) {
  std::error_code failure;
  const std::uintmax_t size = fs::file_size(path, failure);
  if (failure || size > kMostChange) return Error{ErrorCode::kIo, fmt::format("{} is no file of a change", path), {}};
  Result<std::string> text = registry::read_small_file(path, static_cast<std::size_t>(size));
  if (!text) return text.error();
  return net::peers::read_change(*text);
}

}  // namespace

Result<ChangeRecord> ChangeRecord::open(std::string folder) {
  if (const Result<void> made = registry::make_folders(folder); !made) return made.error();
  if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0) return registry::system_error("cannot keep changes in", folder);
  return ChangeRecord(std::move(folder));
}

void ChangeRecord::read(const std::function<bool(net::Change)>& take) {
  std::vector<std::string> names;  // they begin with the changes' numbers
  std::error_code failure;
  for (fs::directory_iterator one(folder_, failure), end; !failure && one != end; one.increment(failure))
    if (one->path().extension() == kEnding) names.push_back(one->path().filename().string());
  if (failure) spdlog::warn("--peer-state {}: {}", folder_, failure.message());
  std::ranges::sort(names, std::greater<>());
  for (const std::string& name : names) {
    const std::string path = folder_ + "/" + name;
    Result<net::Change> change = read_change(path);
    if (change && file_of(*change) == name) {
      kept_.insert(name);
      if (!take(std::move(*change))) return;
    } else {
      spdlog::warn("--peer-state: {} holds no change and is left alone: {}", path,
                   change ? "it has another one's name" : change.error().message);
    }
  }
}

void ChangeRecord::keep(const std::vector<std::shared_ptr<const net::Change>>& needed) {
  std::set<std::string> names;
  for (const auto& change : needed) {
    const std::string& name = *names.insert(file_of(*change)).first;
    if (kept_.contains(name) || patience_.holds()) continue;
    const Result<void> written = registry::write_durably(folder_ + "/" + name, net::peers::text_of(*change));
    if (written) {
      kept_.insert(name);
      patience_ = {};
    } else {
      spdlog::warn("--peer-state: {} would not outlast an end of all servers: {}", change->subject(), written.error().message);
      patience_.fails();
    }
  }
  if (!std::ranges::includes(kept_, names)) return;  // what is to replace the others is not there yet
  std::erase_if(kept_, [&](const std::string& name) {
    std::error_code gone;
    return !names.contains(name) && (fs::remove(folder_ + "/" + name, gone), true);
  });
}

}  // namespace braid::app
