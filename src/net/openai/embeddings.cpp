#include "net/openai/embeddings.h"

#include "net/generation/answering_model.h"
#include "net/generation/whole_format.h"
#include "net/json/fields.h"
#include "net/json/write.h"
#include "net/openai/request.h"
#include "net/wish/parameters.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::openai {
namespace {

// What becomes of a pooled vector.
struct VectorForm {
  std::size_t dimensions = 0;  // its first ones; 0: all
  int norm = kUnitNorm;
};

struct EmbeddingDetails final : DialectDetails {
  bool base64 = false;
  VectorForm form;
  std::size_t width = 0;  // of each of a text's vectors; 0: it has one
};

double length_by(int norm, std::span<const float> vector) {
  constexpr double kLargest = 32760.0;  // what the largest value becomes with 0
  double sum = 0.0;
  for (const float value : vector) {
    const double size = std::fabs(static_cast<double>(value));
    sum = norm == 0 ? std::max(sum, size / kLargest) : sum + (norm == kUnitNorm ? size * size : std::pow(size, norm));
  }
  return norm == 0 ? sum : norm == kUnitNorm ? std::sqrt(sum) : std::pow(sum, 1.0 / norm);
}

std::vector<float> formed(std::vector<float> vector, const VectorForm& form) {
  if (form.dimensions > 0 && form.dimensions < vector.size()) vector.resize(form.dimensions);
  scale_by_norm(vector, form.norm);
  return vector;
}

void append_floats(std::string& out, std::span<const float> vector) {
  out += '[';
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (i > 0) out += ',';
    json::append_float(out, vector[i]);
  }
  out += ']';
}

// The bytes of the floats, little end first, as RFC 4648 has it.
void append_base64(std::string& out, std::span<const float> vector) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint32_t> bytes;
  for (const float value : vector)
    for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back((std::bit_cast<std::uint32_t>(value) >> shift) & 0xFFU);
  out += '"';
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = bytes[i] << 16U;
    if (count > 1) group |= bytes[i + 1] << 8U;
    if (count > 2) group |= bytes[i + 2];
    for (unsigned digit = 0; digit < 4; ++digit) out += digit <= count ? kDigits[(group >> (18U - 6U * digit)) & 0x3FU] : '=';
  }
  out += '"';
}

class EmbeddingsFormat final : public WholeFormat {
 public:
  EmbeddingsFormat(const ServedModel& model, EmbeddingDetails details, const VectorNames& names)
      : model_(answering_model(model)), details_(std::move(details)), names_(names) {}

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    out += R"({"object":"list","data":[)";
    for (std::size_t i = 0; i < choices.size(); ++i) {
      fmt::format_to(std::back_inserter(out), R"({}{{"object":"{}","index":{},"{}":)", i > 0 ? "," : "", names_.object, i, names_.member);
      details_.width == 0 ? append_vector(out, choices[i].vector) : append_vectors(out, choices[i].vector);
      out += '}';
    }
    out += R"(],"model":)" + model_;
    fmt::format_to(std::back_inserter(out), R"(,"usage":{{"prompt_tokens":{0},"total_tokens":{0}}}}})", usage.prompt_tokens);
  }

 private:
  void append_vector(std::string& out, std::span<const float> given) const {
    const std::vector<float> vector = formed({given.begin(), given.end()}, details_.form);
    details_.base64 ? append_base64(out, vector) : append_floats(out, vector);
  }

  // Of each token.
  void append_vectors(std::string& out, std::span<const float> given) const {
    out += '[';
    for (std::size_t begin = 0; begin < given.size(); begin += details_.width) {
      if (begin > 0) out += ',';
      append_vector(out, given.subspan(begin, details_.width));
    }
    out += ']';
  }

  const std::string model_;
  const EmbeddingDetails details_;
  const VectorNames names_;
};

Result<bool> wants_base64(const Value& body) {
  const Value* format = body.find("encoding_format");
  if (format == nullptr || format->is_null() || *format == Value("float")) return false;
  if (*format == Value("base64")) return true;
  return invalid_argument("'encoding_format' must be 'float' or 'base64'", "encoding_format");
}

// The member `name`, taken out of the body; nothing where it is missing or null.
std::optional<Value> take(Value& body, std::string_view name) {
  Value* const member = find_member(*body.get_if<ValueDict>(), name);
  if (member == nullptr || member->is_null()) return std::nullopt;
  return std::exchange(*member, Value());
}

std::string list_of(std::span<const std::int64_t> numbers) {
  std::string list;
  for (const std::int64_t number : numbers) list += fmt::format("{}{}", list.empty() ? "" : ", ", number);
  return list;
}

// Matryoshka representations: the first numbers of a vector are one, too.
Result<std::size_t> read_dimensions(Value& body, const VectorRules& rules) {
  const std::optional<Value> given = take(body, "dimensions");
  if (!given) return std::size_t{0};
  const std::int64_t most = rules.width > 0 ? rules.width : std::numeric_limits<std::int32_t>::max();
  const Result<std::int64_t> size = json::read_integer(*given, "dimensions", 1);
  if (!size) return size.error();
  const bool listed = rules.dimensions.empty() || *size == most || std::ranges::find(rules.dimensions, *size) != rules.dimensions.end();
  if (*size <= most && listed) return static_cast<std::size_t>(*size);
  return invalid_argument(rules.dimensions.empty() ? fmt::format("'dimensions' is {}, and this model's vectors have 1 to {}", *size, most)
                                                   : fmt::format("'dimensions' is {}; this model's vectors may have {} or {}", *size,
                                                                 list_of(rules.dimensions), most),
                          "dimensions");
}

// What texts are for.
struct Purpose {
  std::string words;      // that go before each of them
  std::int32_t task = 0;  // GenerationRequest's
};

// Said by prompt_name, which is about words alone, or by task; or the model's own.
Result<Purpose> read_purpose(Value& body, const VectorRules& rules) {
  const char* field = "prompt_name";
  std::optional<Value> given = take(body, field);
  if (!given) given = take(body, field = "task");
  if (!given) {
    const std::string* own = rules.prompt(rules.default_prompt);
    return Purpose{own != nullptr ? *own : std::string(), 0};
  }
  const Result<std::string> name = json::read_string(*given, field);
  if (!name) return name.error();
  Purpose purpose;
  const auto task = std::ranges::find(rules.tasks, *name);
  const bool has_weights = std::string_view(field) == "task" && task != rules.tasks.end();
  if (has_weights) purpose.task = static_cast<std::int32_t>(task - rules.tasks.begin()) + 1;
  const std::string* const words = rules.prompt(*name);
  if (words != nullptr) purpose.words = *words;
  if (words != nullptr || has_weights) return purpose;
  std::string names;
  for (const auto& [own, text] : rules.prompts) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", own);
  return invalid_argument(rules.prompts.empty() ? fmt::format("'{}' is '{}', and this model has no prompts", field, *name)
                                                : fmt::format("'{}' is '{}'; this model has the prompts {}", field, *name, names),
                          field);
}

void put_before(const std::string& words, std::vector<PromptItem>& items) {
  for (PromptItem& item : items)
    if (auto* text = std::get_if<std::string>(&item)) text->insert(0, words);
}

Result<void> only_floats(wish::BodyFields&, Value& value, const std::string& path) {
  if (value == Value("float32")) return {};
  return invalid_argument(fmt::format("'{}' is not supported with another value than 'float32'", path), path);
}

Result<void> only_activated(wish::BodyFields&, Value& value, const std::string& path) {
  if (value == Value(true)) return {};
  return invalid_argument(fmt::format("'{}' is not supported with another value than true", path), path);
}

constexpr std::array kEmbedded = {
    wish::Parameter{"input", read_prompt},
    wish::Parameter{"encoding_format", wish::accept_string},  // wants_base64() reads it
    wish::Parameter{"embed_dtype", only_floats},
    wish::Parameter{"use_activation", only_activated},
};

}  // namespace

Result<int> take_norm(Value& body, int otherwise) {
  constexpr std::int64_t kMostNorm = 64;
  const std::optional<Value> given = take(body, "embd_normalize");
  if (!given) return otherwise;
  const Result<std::int64_t> norm = json::read_integer(*given, "embd_normalize", kNoNorm, kMostNorm);
  return norm ? Result<int>(static_cast<int>(*norm)) : norm.error();
}

void scale_by_norm(std::vector<float>& vector, int norm) {
  const double length = norm == kNoNorm ? 0.0 : length_by(norm, vector);
  if (length == 0.0) return;
  const double scale = 1.0 / length;
  for (float& value : vector) value = static_cast<float>(value * scale);
}

Result<void> read_truncation(Value& body, Wish& wish) {
  const std::optional<Value> given = take(body, "truncate_prompt_tokens");
  if (!given) return {};
  const Result<std::int64_t> most = json::read_integer(*given, "truncate_prompt_tokens", -1, std::numeric_limits<std::int32_t>::max());
  if (!most) return most.error();
  if (*most == 0)
    return invalid_argument("'truncate_prompt_tokens' is 0; expected a number of tokens, or -1 for what the model reads",
                            "truncate_prompt_tokens");
  wish.prompt_head = static_cast<std::int32_t>(*most);
  return {};
}

Result<Wish> read_embeddings(Value& body, const ServedModel& model) {
  wish::BodyFields fields(model);
  const auto details = std::make_shared<EmbeddingDetails>();
  const Result<std::size_t> dimensions = read_dimensions(body, model.vectors);
  if (!dimensions) return dimensions.error();
  const Result<int> norm = take_norm(body, model.vectors.unit_length ? kUnitNorm : kNoNorm);
  if (!norm) return norm.error();
  details->form = {*dimensions, *norm};
  for (const char* name : {"normalize", "embed_normalize"}) {
    const std::optional<Value> given = take(body, name);
    if (!given) continue;
    const Result<bool> normalizes = json::read_bool(*given, name);
    if (!normalizes) return normalizes.error();
    details->form.norm = *normalizes ? kUnitNorm : kNoNorm;
  }
  const Result<Purpose> purpose = read_purpose(body, model.vectors);
  if (!purpose) return purpose.error();
  if (const Result<void> truncated = read_truncation(body, fields.wish); !truncated) return truncated.error();
  const std::array tables = {std::span<const wish::Parameter>(kEmbedded), wish::common_parameters(), wish::token_parameters()};
  const Result<void> read = wish::read_parameters(fields, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  const Result<bool> base64 = wants_base64(body);
  if (!base64) return base64.error();
  if (!fields.prompt) return invalid_argument("'input' is missing", "input");
  put_before(purpose->words, *fields.prompt);
  Wish wish = unanswered(fields, "input");
  wish.pooling = model.pooling;
  wish.task = purpose->task;
  details->base64 = *base64;
  wish.details = details;
  return wish;
}

void append_unit_vector(std::string& out, std::vector<float> vector) { append_floats(out, formed(std::move(vector), {})); }

std::unique_ptr<AnswerFormat> embeddings_format(const ServedModel& model, const GenerationCall& call, const VectorNames& names) {
  EmbeddingDetails details = static_cast<const EmbeddingDetails&>(*call.details);
  if (call.pooling == Pooling::kEach) details.width = static_cast<std::size_t>(std::max<std::int64_t>(0, model.vectors.width));
  return std::make_unique<EmbeddingsFormat>(model, std::move(details), names);
}

}  // namespace braid::net::openai
