// What of an answer is guessed before it is computed: braid's own parameter, OpenAI's and llama-server's.
#include "net/json/fields.h"
#include "net/wish/parameters.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <utility>

namespace braid::net::wish {
namespace {

constexpr std::int64_t kMostDrafts = 64;

Result<void> read_method(BodyFields& fields, const Value& value, const std::string& path) {
  const Result<std::string> name = json::read_string(value, path);
  if (!name) return name.error();
  const std::optional<DraftMethod> method = draft_method_of(*name);
  if (!method) return invalid_argument(fmt::format("'{}' must be one of '{}'", path, fmt::join(kDraftMethodNames, "', '")), path);
  if (const std::string why = fields.model.drafts.refusal_of(*method); !why.empty())
    return invalid_argument(fmt::format("'{}' is '{}', but {}", path, *name, why), path);
  fields.wish.speculation.method = *method;
  return {};
}

Result<void> read_speculative(BodyFields& fields, Value& value, const std::string& path) {
  const auto* members = value.get_if<ValueDict>();
  if (members == nullptr) return json::wrong_type(path, "an object", value);
  for (const auto& [name, member] : *members) {
    const std::string member_path = json::at_key(path, name);
    if (name == "method") {
      if (const Result<void> read = read_method(fields, member, member_path); !read) return read;
    } else if (name == "max_tokens") {
      const Result<std::int64_t> most = json::read_integer(member, member_path, 1, kMostDrafts);
      if (!most) return most.error();
      fields.wish.speculation.max_tokens = static_cast<std::int32_t>(*most);
    } else {
      return invalid_argument(fmt::format("'{}' is not known: 'speculative' has 'method' and 'max_tokens'", member_path), member_path);
    }
  }
  return {};
}

// OpenAI's {"type": "content", "content": a text or parts of one}.
Result<void> read_prediction(BodyFields& fields, Value& value, const std::string& path) {
  if (value.get_if<ValueDict>() == nullptr) return json::wrong_type(path, "an object", value);
  const Value* content = value.find("content");
  if (content == nullptr || content->is_null()) return {};
  const std::string content_path = json::at_key(path, "content");
  const auto* parts = content->get_if<ValueList>();
  if (parts == nullptr) {
    Result<std::string> text = json::read_string(*content, content_path);
    if (!text) return text.error();
    fields.wish.prediction = std::move(*text);
    return {};
  }
  for (std::size_t i = 0; i < parts->size(); ++i) {
    const std::string part_path = json::at_index(content_path, i);
    const Value* text = (*parts)[i].get_if<ValueDict>() != nullptr ? (*parts)[i].find("text") : nullptr;
    if (text == nullptr) return json::wrong_type(part_path, "a part with a text", (*parts)[i]);
    const Result<std::string> read = json::read_string(*text, json::at_key(part_path, "text"));
    if (!read) return read.error();
    fields.wish.prediction += *read;
  }
  return {};
}

// 0: nothing is guessed.
Result<void> read_n_max(BodyFields& fields, Value& value, const std::string& path) {
  const Result<float> most = json::read_number(value, path, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max());
  if (!most) return most.error();
  Speculation& wanted = fields.wish.speculation;
  if (*most < 1.0F) {
    wanted.method = DraftMethod::kOff;
  } else {
    wanted.max_tokens = static_cast<std::int32_t>(std::min(*most, static_cast<float>(kMostDrafts)));
  }
  return {};
}

constexpr std::array kSpeculation = {
    Parameter{"speculative", read_speculative},
    Parameter{"prediction", read_prediction},
    Parameter{"speculative.n_max", read_n_max},
};

}  // namespace

std::span<const Parameter> speculation_parameters() { return kSpeculation; }

}  // namespace braid::net::wish
