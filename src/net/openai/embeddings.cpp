#include "net/openai/embeddings.h"

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
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::openai {
namespace {

struct EmbeddingDetails final : DialectDetails {
  bool base64 = false;
};

// In place, so that its length is 1. A vector of zeros stays.
void normalize(std::vector<float>& vector) {
  double sum = 0.0;
  for (const float value : vector) sum += static_cast<double>(value) * value;
  if (sum == 0.0) return;
  const double scale = 1.0 / std::sqrt(sum);
  for (float& value : vector) value = static_cast<float>(value * scale);
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

class EmbeddingsFormat final : public AnswerFormat {
 public:
  EmbeddingsFormat(const ServedModel& model, bool base64) : model_(model.id), base64_(base64) {}

  void append_delta(std::string&, std::uint32_t, const Delta&, const DeltaTokens&, const Usage&) override { not_streamed(); }
  void append_finish(std::string&, std::uint32_t, const ChoiceEnd&, const DeltaTokens&, const Usage&) override { not_streamed(); }
  void append_end(std::string&, const Usage&) override { not_streamed(); }
  void append_error(std::string&, const Error&) override { not_streamed(); }

  void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) override {
    out += R"({"object":"list","data":[)";
    for (std::size_t i = 0; i < choices.size(); ++i) {
      std::vector<float> vector = choices[i].vector;
      normalize(vector);
      fmt::format_to(std::back_inserter(out), R"({}{{"object":"embedding","index":{},"embedding":)", i > 0 ? "," : "", i);
      base64_ ? append_base64(out, vector) : append_floats(out, vector);
      out += '}';
    }
    out += R"(],"model":)";
    json::append_lossy_string(out, model_);
    fmt::format_to(std::back_inserter(out), R"(,"usage":{{"prompt_tokens":{0},"total_tokens":{0}}}}})", usage.prompt_tokens);
  }

 private:
  [[noreturn]] static void not_streamed() { throw std::logic_error("embeddings are never streamed"); }

  std::string model_;
  bool base64_;
};

Result<bool> wants_base64(const Value& body) {
  const Value* format = body.find("encoding_format");
  if (format == nullptr || format->is_null() || *format == Value("float")) return false;
  if (*format == Value("base64")) return true;
  return invalid_argument("'encoding_format' must be 'float' or 'base64'", "encoding_format");
}

Result<void> refuse_dimensions(wish::BodyFields&, Value&, const std::string& path) {
  return invalid_argument(fmt::format("'{}' is not supported: a vector is as wide as its model", path), path);
}

constexpr std::array kEmbedded = {wish::Parameter{"input", read_prompt}, wish::Parameter{"dimensions", refuse_dimensions}};

}  // namespace

Result<Wish> read_embeddings(Value& body, const ServedModel& model) {
  wish::BodyFields fields(model);
  const std::array tables = {std::span<const wish::Parameter>(kEmbedded), wish::common_parameters()};
  const Result<void> read = wish::read_parameters(fields, *body.get_if<ValueDict>(), tables);
  if (!read) return read.error();
  const Result<bool> base64 = wants_base64(body);
  if (!base64) return base64.error();
  if (!fields.prompt) return invalid_argument("'input' is missing", "input");
  Wish wish = unanswered(fields, "input");
  wish.pooling = model.pooling;
  const auto details = std::make_shared<EmbeddingDetails>();
  details->base64 = *base64;
  wish.details = details;
  return wish;
}

void append_unit_vector(std::string& out, std::vector<float> vector) {
  normalize(vector);
  append_floats(out, vector);
}

std::unique_ptr<AnswerFormat> embeddings_format(const ServedModel& model, const GenerationCall& call) {
  return std::make_unique<EmbeddingsFormat>(model, static_cast<const EmbeddingDetails&>(*call.details).base64);
}

}  // namespace braid::net::openai
