#include "net/responses/item_references.h"

#include "net/json/fields.h"
#include "net/json/parse.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace braid::net::responses {
namespace {

// The items of response resp_X are msg_X_0, fc_X_1 and so on, those of its input msg_X_in0.
std::string response_of(std::string_view item_id) {
  const std::size_t begin = item_id.find('_');
  const std::size_t end = item_id.rfind('_');
  return begin == end ? std::string() : fmt::format("resp_{}", item_id.substr(begin + 1, end - begin - 1));
}

bool is_reference(const Value& item) {
  const Value* type = item.find("type");
  return type != nullptr && *type == Value("item_reference");
}

// Null when there is none.
Value find_in(const ValueList& items, const Value& id) {
  const auto is_named = [&id](const Value& item) {
    const Value* own = item.find("id");
    return own != nullptr && *own == id;
  };
  const auto found = std::find_if(items.begin(), items.end(), is_named);
  return found != items.end() ? *found : Value();
}

// The item `id` of the response's input or output; null when it has none.
Value find_item(const StoredResponse& response, const Value& id) {
  Value given = find_in(response.input, id);
  if (!given.is_null()) return given;
  std::string body = response.body;
  const Result<Value> document = json::parse(body);
  const Value* output = document ? document->find("output") : nullptr;
  const auto* items = output != nullptr ? output->get_if<ValueList>() : nullptr;
  return items != nullptr ? find_in(*items, id) : Value();
}

// `bytes_left` bounds the work: each reference reads the whole response that it is about.
Result<Value> item_of(const Value& reference, const Shelf& shelf, std::size_t& bytes_left, const std::string& path) {
  const Value* id = reference.find("id");
  const std::string id_path = json::at_key(path, "id");
  if (id == nullptr) return invalid_argument(fmt::format("'{}' is missing", id_path), id_path);
  const Result<std::string> name = json::read_string(*id, id_path);
  if (!name) return name.error();
  const auto response = shelf.find(response_of(*name));
  if (response != nullptr && response->body.size() > bytes_left)
    return invalid_argument(fmt::format("the responses whose items are named up to '{}' are too large together", path), path);
  if (response != nullptr) bytes_left -= response->body.size();
  Value item = response != nullptr ? find_item(*response, *id) : Value();
  if (item.is_null())
    return invalid_argument(fmt::format("'{}' names the item '{}', which is unknown or no longer kept", id_path, *name), id_path);
  return item;
}

}  // namespace

Result<void> resolve_references(Value& input, const Shelf& shelf, const std::string& path) {
  auto* items = input.get_if<ValueList>();
  if (items == nullptr) return {};
  std::size_t bytes_left = ResponseStore::kMaxBytes;
  for (std::size_t i = 0; i < items->size(); ++i) {
    if (!is_reference((*items)[i])) continue;
    Result<Value> item = item_of((*items)[i], shelf, bytes_left, json::at_index(path, i));
    if (!item) return item.error();
    (*items)[i] = std::move(*item);
  }
  return {};
}

std::size_t named_bytes(const Value& body, const Shelf& shelf) {
  const auto text_of = [](const Value* value) { return value != nullptr ? value->get_if<std::string>() : nullptr; };
  const std::string* previous = text_of(body.find("previous_response_id"));
  std::size_t bytes = previous != nullptr ? shelf.bytes(*previous) : 0;
  const Value* input = body.find("input");
  const auto* items = input != nullptr ? input->get_if<ValueList>() : nullptr;
  if (items == nullptr) return bytes;
  for (const Value& item : *items) {
    const std::string* id = is_reference(item) ? text_of(item.find("id")) : nullptr;
    if (id != nullptr) bytes += shelf.bytes(response_of(*id));
  }
  return bytes;
}

}  // namespace braid::net::responses
