#include <net/responses/store.h>

#include <utility>
#include <variant>

namespace braid::net::responses {
namespace {

std::size_t bytes_of(const Value& value);

std::size_t bytes_of(const ValueList& list) {
  std::size_t bytes = 0;
  for (const Value& item : list) bytes += bytes_of(item);
  return bytes;
}

std::size_t bytes_of(const Value& value) {
  std::size_t bytes = sizeof value;
  if (const auto* text = value.get_if<std::string>()) bytes += text->size();
  if (const auto* list = value.get_if<ValueList>()) bytes += bytes_of(*list);
  if (const auto* dict = value.get_if<ValueDict>())
    for (const auto& [name, member] : *dict) bytes += sizeof name + name.size() + bytes_of(member);
  return bytes;
}

}  // namespace

void ResponseStore::keep(std::string_view owner, std::string_view id, StoredResponse response) {
  const std::size_t bytes = owner.size() + id.size() + response.body.size() + bytes_of(response.messages) + bytes_of(response.input);
  if (bytes > max_bytes_ || max_responses_ == 0) return;
  auto shared = std::make_shared<const StoredResponse>(std::move(response));
  const std::lock_guard lock(mutex_);
  while (!entries_.empty() && (bytes_ + bytes > max_bytes_ || entries_.size() >= max_responses_)) remove(std::prev(entries_.end()));
  entries_.push_front({std::string(owner), std::string(id), bytes, std::move(shared)});
  by_id_.emplace(entries_.front().id, entries_.begin());
  bytes_ += bytes;
}

std::shared_ptr<const StoredResponse> ResponseStore::find(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = lookup(owner, id);
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return found->response;
}

bool ResponseStore::erase(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = lookup(owner, id);
  if (found == entries_.end()) return false;
  remove(found);
  return true;
}

ResponseStore::Entries::iterator ResponseStore::lookup(std::string_view owner, std::string_view id) {
  const auto found = by_id_.find(id);
  return found != by_id_.end() && found->second->owner == owner ? found->second : entries_.end();
}

void ResponseStore::remove(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

}  // namespace braid::net::responses
