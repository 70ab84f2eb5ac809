#include "net/responses/store.h"

#include <algorithm>
#include <utility>

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
  const auto place = owners_.try_emplace(std::string(owner)).first;
  Entries& entries = place->second.entries;
  try {
    Entries kept;
    kept.push_front({place, std::string(id), bytes, std::move(shared)});
    by_id_.emplace(kept.front().id, kept.begin());
    entries.splice(entries.begin(), kept);
  } catch (...) {  // out of memory: it is not kept
    if (entries.empty()) owners_.erase(place);
    throw;
  }
  place->second.bytes += bytes;
  bytes_ += bytes;
  make_room();
}

void ResponseStore::make_room() {
  while (by_id_.size() > max_responses_ || bytes_ > max_bytes_) {
    const bool is_number = by_id_.size() > max_responses_;
    const auto use = [is_number](const auto& owner) { return is_number ? owner.second.entries.size() : owner.second.bytes; };
    remove(std::ranges::max_element(owners_, {}, use)->second.entries.back());
  }
}

std::shared_ptr<const StoredResponse> ResponseStore::find(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const Entry* found = lookup(owner, id);
  if (found == nullptr) return nullptr;
  Entries& entries = found->owner->second.entries;
  entries.splice(entries.begin(), entries, by_id_.at(found->id));
  return found->response;
}

std::size_t ResponseStore::bytes(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const Entry* found = lookup(owner, id);
  return found != nullptr ? found->bytes : 0;
}

bool ResponseStore::erase(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const Entry* found = lookup(owner, id);
  if (found == nullptr) return false;
  remove(*found);
  return true;
}

ResponseStore::Entry* ResponseStore::lookup(std::string_view owner, std::string_view id) {
  const auto found = by_id_.find(id);
  return found != by_id_.end() && found->second->owner->first == owner ? &*found->second : nullptr;
}

void ResponseStore::remove(const Entry& entry) {
  const Owners::iterator owner = entry.owner;
  bytes_ -= entry.bytes;
  owner->second.bytes -= entry.bytes;
  const auto known = by_id_.find(entry.id);
  const Entries::iterator place = known->second;
  by_id_.erase(known);
  owner->second.entries.erase(place);
  if (owner->second.entries.empty()) owners_.erase(owner);
}

}  // namespace braid::net::responses
