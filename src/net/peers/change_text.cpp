#include "net/peers/change_text.h"

#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/json/write.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <utility>

namespace braid::net::peers {
namespace {

constexpr auto kKinds = std::to_array<std::string_view>({"all", "update", "part"});
constexpr auto kRoutes = std::to_array<std::string_view>(
    {"/update_weights", "/v1/adapters", "/v1/load_lora_adapter", "/update_adapter_weights", "/v1/unload_lora_adapter"});

// Members of an object that another server has sent; the first error counts.
struct Told {
  const Value& object;
  std::optional<Error> error = {};

  std::string text(std::string_view key) { return take(json::read_string(member(key), std::string(key))); }
  std::uint64_t number(std::string_view key) {
    return static_cast<std::uint64_t>(take(json::read_integer(member(key), std::string(key), 0)));
  }
  bool flag(std::string_view key) { return take(json::read_bool(member(key), std::string(key))); }
  template <std::size_t size>
  std::size_t place(std::string_view key, const std::array<std::string_view, size>& names) {
    const std::string name = text(key);
    const auto found = std::ranges::find(names, name);
    if (found == names.end() && !error)
      error = invalid_argument(fmt::format("'{}' is '{}', which is not known", key, name), std::string(key));
    return found == names.end() ? 0 : static_cast<std::size_t>(found - names.begin());
  }

 private:
  const Value& member(std::string_view key) const {
    static const Value none;
    const Value* found = object.find(key);
    return found != nullptr ? *found : none;
  }
  template <class T>
  T take(Result<T> read) {
    if (read) return std::move(*read);
    if (!error) error = read.error();
    return {};
  }
};

constexpr std::size_t kMostNode = 64;  // bytes: it is a part of a file's name where changes are kept

ChangeKey read_key(Told& told) {
  ChangeKey key{.number = told.number("number"),
                .node = told.text("node"),
                .model = told.text("model"),
                .adapter = told.text("adapter"),
                .revision = told.text("revision"),
                .kind = static_cast<ChangeKey::Kind>(told.place("kind", kKinds))};
  if (key.node.size() > kMostNode && !told.error) told.error = invalid_argument("'node' is too long", "node");
  return key;
}

}  // namespace

void append_key(std::string& out, const ChangeKey& key, std::string_view more) {
  fmt::format_to(std::back_inserter(out), R"({{"number":{},"node":)", key.number);
  json::append_lossy_string(out, key.node);
  json::append_member(out, "model", key.model);
  json::append_member(out, "adapter", key.adapter);
  json::append_member(out, "revision", key.revision);
  fmt::format_to(std::back_inserter(out), R"(,"kind":"{}"{}}})", kKinds[static_cast<std::size_t>(key.kind)], more);
}

std::string text_of(const Change& change) {
  std::string text;
  append_key(text, change, fmt::format(R"(,"route":"{}")", kRoutes[static_cast<std::size_t>(change.route)]));
  text += '\n';
  text += change.body;
  return text;
}

Result<Change> read_change(std::string& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return invalid_argument("a change is a line of JSON and the body of the request that made it");
  std::string line = text.substr(0, end);
  const Result<Value> object = json::parse_object(line);
  if (!object) return object.error();
  Told told{*object};
  Change change;
  static_cast<ChangeKey&>(change) = read_key(told);
  change.route = static_cast<Change::Route>(told.place("route", kRoutes));
  if (told.error) return *told.error;
  change.body = text.substr(end + 1);
  return change;
}

Result<State> read_state(std::string& text) {
  const Result<Value> object = json::parse_object(text);
  if (!object) return object.error();
  Told told{*object};
  State state{.node = told.text("node"), .changes = {}};
  const Value* changes = object->find("changes");
  const auto* list = changes != nullptr ? changes->get_if<ValueList>() : nullptr;
  if (list == nullptr) return invalid_argument("'changes' is no list", "changes");
  for (const Value& one : *list) {
    Told each{one};
    KnownChange known{read_key(each), each.flag("in_effect")};
    if (each.error) return *each.error;
    state.changes.push_back(std::move(known));
  }
  if (told.error) return *told.error;
  return state;
}

}  // namespace braid::net::peers
