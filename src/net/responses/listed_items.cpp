#include "net/responses/listed_items.h"

#include "net/http/query.h"
#include "net/json/write.h"
#include "net/json/write_value.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace braid::net::responses {
namespace {

constexpr std::size_t kDefaultLimit = 20;  // these two as at OpenAI
constexpr std::size_t kMaxLimit = 100;

std::string_view id_prefix_of(const Value& type) {
  if (type == Value("message")) return "msg";
  if (type == Value("reasoning")) return "rs";
  return type == Value("function_call") ? "fc" : "fco";
}

// Text alone becomes a list of one part.
void divide_content(ValueDict& item) {
  const Value* role = find_member(item, "role");
  Value* content = find_member(item, "content");
  auto* text = content != nullptr ? content->get_if<std::string>() : nullptr;
  if (role == nullptr || text == nullptr) return;
  const bool answer = *role == Value("assistant");
  ValueDict part{{"type", answer ? "output_text" : "input_text"}, {"text", std::move(*text)}};
  if (answer) part.emplace_back("annotations", ValueList());
  *content = ValueList{Value(std::move(part))};
}

Result<std::size_t> read_limit(std::string_view query) {
  const std::optional<std::string> text = http::query_value(query, "limit");
  if (!text) return kDefaultLimit;
  std::size_t limit = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (error == std::errc() && end == text->data() + text->size() && limit >= 1 && limit <= kMaxLimit) return limit;
  return invalid_argument(fmt::format("'limit' must be a whole number from 1 to {}", kMaxLimit), "limit");
}

void append_id(std::string& out, const std::vector<const Value*>& items, std::size_t index) {
  if (items.empty()) {
    out += "null";
  } else {
    json::append_value(out, *items[index]->find("id"));
  }
}

}  // namespace

void complete_items(ValueList& items, std::string_view response_id) {
  const std::string_view suffix = response_id.substr(response_id.find('_') + 1);
  std::set<std::string> ids;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto& item = *items[i].get_if<ValueDict>();
    if (find_member(item, "type") == nullptr) item.emplace(item.begin(), "type", "message");
    divide_content(item);
    if (find_member(item, "status") == nullptr) item.emplace(item.begin(), "status", "completed");
    const Value* given = find_member(item, "id");
    const auto* own = given != nullptr ? given->get_if<std::string>() : nullptr;
    std::string id = own != nullptr ? *own : std::string();
    if (id.empty() || ids.contains(id)) id = fmt::format("{}_{}_in{}", id_prefix_of(*find_member(item, "type")), suffix, i);
    ids.insert(id);
    std::erase_if(item, [](const auto& member) { return member.first == "id"; });
    item.emplace(item.begin(), "id", std::move(id));
  }
}

Result<std::string> list_items(const ValueList& items, std::string_view query) {
  const std::string order = http::query_value(query, "order").value_or("desc");
  if (order != "asc" && order != "desc") return invalid_argument("'order' must be 'asc' or 'desc'", "order");
  const Result<std::size_t> limit = read_limit(query);
  if (!limit) return limit.error();
  std::vector<const Value*> page;
  for (const Value& item : items) page.push_back(&item);
  if (order == "desc") std::ranges::reverse(page);
  if (const std::optional<std::string> after = http::query_value(query, "after")) {
    const auto found = std::ranges::find_if(page, [id = Value(*after)](const Value* item) { return *item->find("id") == id; });
    if (found == page.end())
      return invalid_argument(fmt::format("'after' names the item '{}', which is not in this list", *after), "after");
    page.erase(page.begin(), std::next(found));
  }
  const bool more = page.size() > *limit;
  page.resize(std::min(page.size(), *limit));
  std::string list = R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (i > 0) list += ',';
    json::append_value(list, *page[i]);
  }
  list += R"(],"first_id":)";
  append_id(list, page, 0);
  list += R"(,"last_id":)";
  append_id(list, page, page.size() - 1);
  list.append(R"(,"has_more":)").append(more ? "true}" : "false}");
  return list;
}

}  // namespace braid::net::responses
