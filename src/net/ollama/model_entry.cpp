#include "net/ollama/model_entry.h"

#include "net/json/write.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <openssl/sha.h>
#include <utility>

namespace braid::net::ollama {
namespace {

void append_head(std::string& out, std::string_view id, std::uint64_t bytes, std::string_view digest) {
  const std::string name = json::quoted(id);
  fmt::format_to(std::back_inserter(out), R"({{"name":{0},"model":{0},"size":{1},"digest":"{2}",)", name, bytes, digest);
}

}  // namespace

std::string parameter_size(std::int64_t parameters) {
  constexpr std::array<std::pair<double, char>, 3> kUnits = {{{1e9, 'B'}, {1e6, 'M'}, {1e3, 'K'}}};
  const auto count = static_cast<double>(parameters);
  for (const auto& [unit, letter] : kUnits)
    if (count >= unit) return fmt::format("{:.1f}{}", count / unit, letter);
  return fmt::to_string(parameters);
}

void append_details(std::string& out, const ModelFacts& facts, std::string_view parent) {
  const std::string family = json::quoted(facts.architecture);
  fmt::format_to(std::back_inserter(out),
                 R"("details":{{"parent_model":{0},"format":{1},"family":{2},"families":[{2}],"parameter_size":"{3}",)"
                 R"("quantization_level":{4}}})",
                 json::quoted(parent), json::quoted(facts.format), family, parameter_size(facts.parameters),
                 json::quoted(facts.quantisation.empty() ? "unknown" : facts.quantisation));
}

ModelFacts facts_of(const ServedModel& model) {
  ModelFacts facts;
  facts.format = "gguf";
  facts.architecture = model.architecture;
  facts.parameters = model.parameters;
  facts.quantisation = model.weight_type;
  facts.context = model.context_length;
  return facts;
}

std::string digest_of(const ServedModel& model) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(model.fingerprint.data()), model.fingerprint.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

void append_entry(std::string& out, const ServedModel& model) {
  append_head(out, model.id, model.bytes, digest_of(model));
  append_details(out, facts_of(model), "");
}

void append_entry(std::string& out, const StoredModel& model) {
  append_head(out, model.name, model.bytes, model.digest);
  append_details(out, model.facts, model.parent);
}

}  // namespace braid::net::ollama
