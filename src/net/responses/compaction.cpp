#include "net/responses/compaction.h"

#include "net/json/fields.h"
#include "net/json/write.h"
#include "net/json/write_value.h"
#include "net/responses/input_items.h"
#include "net/responses/item_references.h"
#include "net/responses/listed_items.h"
#include "net/responses/request.h"
#include "net/responses/usage.h"
#include "net/wish/seal.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <fmt/format.h>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::responses {
namespace {

constexpr std::string_view kAsk =
    "Summarise our conversation so far. Your summary takes its place, so say what was asked for, decided, done and found, with the names "
    "and "
    "values that matter, and what is left to do. Answer with the summary alone.";

// What stands in the place of the conversation.
struct CompactionDetails final : DialectDetails {
  ValueList rules;  // items of systems and developers
  ValueList kept;   // of the last turn
};

bool has_role(const Value& item, std::initializer_list<const char*> roles) {
  const Value* role = item.find("role");
  return role != nullptr && std::ranges::any_of(roles, [role](const char* one) { return *role == Value(one); });
}

// Where the last turn of the items begins; how many they are when there is none.
std::size_t last_turn(const ValueList& items) {
  for (std::size_t i = items.size(); i > 0; --i)
    if (has_role(items[i - 1], {"user"}) && (i == 1 || !has_role(items[i - 2], {"user"}))) return i - 1;
  return items.size();
}

// About a quarter of the context, at four bytes a token.
bool is_short(const ValueList& items, std::size_t begin, std::int32_t context) {
  std::string text;
  for (std::size_t i = begin; i < items.size(); ++i) json::append_value(text, items[i]);
  return text.size() <= static_cast<std::size_t>(context);
}

void append_rules(ValueList& rules, const ValueList& items) {
  std::ranges::copy_if(items, std::back_inserter(rules), [](const Value& item) { return has_role(item, {"system", "developer"}); });
}

// The items of the body's input, each there itself.
Result<ValueList> read_items(Value& body, const Shelf& shelf) {
  Value* const input = find_member(*body.get_if<ValueDict>(), "input");
  if (input == nullptr || input->is_null()) return ValueList();
  if (const Result<void> resolved = resolve_references(*input, shelf, "input"); !resolved) return resolved.error();
  ValueList messages;
  std::vector<std::string> left_out;
  if (const Result<void> right = append_input(messages, *input, "input", left_out); !right) return right.error();
  if (auto* items = input->get_if<ValueList>()) return std::move(*items);
  return messages;
}

std::shared_ptr<const StoredResponse> previous_of(const Value& body, const Shelf& shelf) {
  const Value* id = body.find("previous_response_id");
  const auto* text = id != nullptr ? id->get_if<std::string>() : nullptr;
  return text != nullptr ? shelf.find(*text) : nullptr;
}

// The body of a response that summarises the turns which `items` have and the previous response had.
void ask_for_summary(Value& body, ValueList items, std::int32_t context) {
  items.emplace_back(ValueDict{{"role", "user"}, {"content", std::string(kAsk)}});
  auto& members = *body.get_if<ValueDict>();
  static constexpr std::array<std::string_view, 10> kReplaced = {"input", "stream",  "stream_options", "store",      "tool_choice",
                                                                 "text",  "include", "reasoning",      "truncation", "max_output_tokens"};
  std::erase_if(members, [](const auto& member) { return std::ranges::find(kReplaced, member.first) != kReplaced.end(); });
  members.emplace_back("input", std::move(items));
  members.emplace_back("tool_choice", "none");
  members.emplace_back("reasoning", ValueDict{{"effort", "none"}});
  members.emplace_back("truncation", "auto");
  members.emplace_back("max_output_tokens", std::int64_t{std::max(context / 8, 1)});
}

Result<Wish> read_compaction(Value& body, const ServedModel& model, const Shelf& shelf) {
  Result<ValueList> items = read_items(body, shelf);
  if (!items) return items.error();
  const auto previous = previous_of(body, shelf);
  const std::size_t last = last_turn(*items);
  const bool is_kept = (last > 0 || previous != nullptr) && is_short(*items, last, model.context_length);
  const auto begin = items->begin() + static_cast<std::ptrdiff_t>(is_kept ? last : items->size());
  auto details = std::make_shared<CompactionDetails>();
  details->kept.assign(begin, items->end());
  items->erase(begin, items->end());
  if (previous != nullptr) append_rules(details->rules, previous->messages);
  append_rules(details->rules, *items);
  if (items->empty() && previous == nullptr && body.find("previous_response_id") == nullptr)
    return invalid_argument("'input' is missing", "input");
  ask_for_summary(body, std::move(*items), model.context_length);
  Result<Wish> wish = read_response(body, model, shelf);
  if (wish) wish->details = std::move(details);
  return wish;
}

class CompactionFormat final : public AnswerFormat {
 public:
  CompactionFormat(const std::string& id, const GenerationCall& call)
      : id_(id), details_(std::static_pointer_cast<const CompactionDetails>(call.details)) {}

  void append_delta(std::string&, std::uint32_t, const Delta&, const DeltaTokens&, const Usage&) override { not_streamed(); }
  void append_finish(std::string&, std::uint32_t, const ChoiceEnd&, const DeltaTokens&, const Usage&) override { not_streamed(); }
  void append_end(std::string&, const Usage&) override { not_streamed(); }
  void append_error(std::string&, const Error&) override { not_streamed(); }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    ValueList items = details_->rules;
    items.insert(items.end(), details_->kept.begin(), details_->kept.end());
    complete_items(items, id_);
    const auto suffix = id_.substr(id_.find('_') + 1);
    ValueDict summary{
        {"id", "cmp_" + suffix}, {"type", "compaction"}, {"encrypted_content", wish::sealed(answer_text(choices.front().piece.deltas))}};
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(details_->rules.size()), Value(std::move(summary)));
    fmt::format_to(std::back_inserter(out), R"({{"id":"{}","object":"response.compaction","created_at":{},"output":)", id_,
                   std::time(nullptr));
    json::append_value(out, Value(std::move(items)));
    out += R"(,"usage":)";
    append_usage(out, usage);
    out += '}';
  }

 private:
  [[noreturn]] static void not_streamed() { throw std::logic_error("a compaction is never streamed"); }

  const std::string id_;
  const std::shared_ptr<const CompactionDetails> details_;
};

class Compaction final : public Dialect {
 public:
  explicit Compaction(ResponseStore& store) : store_(store) {}

  std::string_view id_prefix() const override { return "resp_"; }
  Result<Wish> read(Value& body, const ServedModel& model, std::string_view client) const override {
    return read_compaction(body, model, {store_, client});
  }
  std::size_t recalled_bytes(const Value& body, std::string_view client) const override { return named_bytes(body, {store_, client}); }
  std::unique_ptr<AnswerFormat> make_format(const std::string& id, const ServedModel&, const GenerationCall& call) const override {
    return std::make_unique<CompactionFormat>(id, call);
  }

 private:
  ResponseStore& store_;
};

}  // namespace

std::unique_ptr<const Dialect> compaction(ResponseStore& store) { return std::make_unique<Compaction>(store); }

}  // namespace braid::net::responses
