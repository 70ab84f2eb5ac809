#include "app/bench/workload.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iterator>
#include <random>
#include <simdjson.h>
#include <span>
#include <string_view>

namespace braid::bench {
namespace {

constexpr std::array<std::string_view, 48> kWords = {
    "river",  "stone",  "quiet",   "lamp",    "winter",  "garden", "paper",  "engine", "cloud",  "bread",   "copper", "window",
    "forest", "music",  "silver",  "bridge",  "morning", "salt",   "letter", "ocean",  "ladder", "candle",  "market", "feather",
    "yellow", "train",  "harbor",  "winter",  "pocket",  "mirror", "summer", "basket", "violin", "thunder", "carpet", "island",
    "pepper", "rocket", "blanket", "orchard", "signal",  "turtle", "velvet", "wagon",  "anchor", "button",  "cactus", "drum"};

constexpr std::size_t kMaxLine = std::size_t{64} << 20U;

enum class PromptKind : std::uint8_t { kText, kMessages, kInputs };

struct Prompt {
  std::string json;  // a string, the list of messages, or the inputs of a prediction
  PromptKind kind = PromptKind::kText;
  std::int64_t max_tokens = 0;
};

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<int>(c));
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

// Words, the first of them a number of its own, so that no two prompts share a prefix.
Prompt synthetic_prompt(const BenchOptions& options, std::int64_t index, std::mt19937_64& random) {
  std::string text = fmt::format("{}", index + static_cast<std::int64_t>(options.seed % 1000) * 1'000'000);
  for (std::int64_t i = 1; i < options.input_len; ++i) {
    text += ' ';
    text += kWords[random() % kWords.size()];
  }
  return {quote(text), PromptKind::kText, options.output_len};
}

std::string base64_of(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view part = bytes.substr(i, 3);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8U | (k < part.size() ? static_cast<unsigned char>(part[k]) : 0U);
    for (std::size_t digit = 0; digit < 4; ++digit) out += digit <= part.size() ? kDigits[group >> (18U - 6U * digit) & 0x3FU] : '=';
  }
  return out;
}

// Numbers from -1 to 1, as the bytes of floats.
Prompt synthetic_inputs(const BenchOptions& options, std::mt19937_64& random) {
  std::uniform_real_distribution<float> number(-1.0F, 1.0F);
  std::string json;
  for (const BenchTensor& tensor : options.tensors) {
    std::string bytes;
    std::int64_t values = 1;
    for (const std::int64_t extent : tensor.shape) values *= extent;
    for (std::int64_t i = 0; i < values; ++i) {
      const float value = number(random);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    fmt::format_to(std::back_inserter(json), R"({}{}:{{"shape":[{}],"dtype":"float32","data":"{}"}})", json.empty() ? "" : ",",
                   quote(tensor.name), fmt::join(tensor.shape, ","), base64_of(bytes));
  }
  return {"{" + json + "}", PromptKind::kInputs, 0};
}

Error wrong_file(const BenchOptions& options, std::string_view what) {
  return invalid_argument(fmt::format("{}: {}", options.prompts_file, what));
}

Result<Prompt> read_prompt(simdjson::dom::parser& parser, const std::string& line, const BenchOptions& options) {
  simdjson::dom::element json;
  if (parser.parse(line).get(json) != simdjson::SUCCESS) return wrong_file(options, "a line is no JSON object");
  Prompt prompt;
  prompt.max_tokens = options.output_len;
  std::string_view text;
  simdjson::dom::array messages;
  simdjson::dom::object inputs;
  if (json["messages"].get(messages) == simdjson::SUCCESS) {
    prompt.kind = PromptKind::kMessages;
    prompt.json = simdjson::minify(messages);
  } else if (json["inputs"].get(inputs) == simdjson::SUCCESS) {
    prompt.kind = PromptKind::kInputs;
    prompt.json = simdjson::minify(inputs);
  } else if (json["prompt"].get(text) == simdjson::SUCCESS) {
    prompt.json = quote(text);
  } else {
    return wrong_file(options, "a line has no \"prompt\", \"messages\" or \"inputs\"");
  }
  std::int64_t max_tokens = 0;
  if (json["max_tokens"].get(max_tokens) == simdjson::SUCCESS) prompt.max_tokens = max_tokens;
  return prompt;
}

Result<std::vector<Prompt>> read_prompts(const BenchOptions& options) {
  std::ifstream file(options.prompts_file);
  if (!file) return Error{ErrorCode::kIo, "cannot read " + options.prompts_file, "prompts-file"};
  simdjson::dom::parser parser;
  std::vector<Prompt> prompts;
  std::vector<char> room(kMaxLine + 1);
  while (file.getline(room.data(), static_cast<std::streamsize>(room.size())) || file.gcount() > 0) {
    if (file.fail()) return wrong_file(options, "a line is longer than 64 MiB");
    const std::string line(room.data(), static_cast<std::size_t>(file.gcount()) - (file.eof() ? 0 : 1));  // without its end
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto prompt = read_prompt(parser, line, options);
    if (!prompt) return prompt.error();
    prompts.push_back(std::move(*prompt));
  }
  if (file.bad() || !file.eof()) return wrong_file(options, "it cannot be read to its end");
  if (prompts.empty()) return invalid_argument(options.prompts_file + " holds no prompt", "prompts-file");
  return prompts;
}

std::string list_of(std::span<const Prompt> prompts) {
  std::string list = "[";
  for (const Prompt& prompt : prompts) list += (list.size() > 1 ? "," : "") + prompt.json;
  return list + "]";
}

// Of a request whose answer comes whole: `prompts` are its texts; of pairs, the first one stands beside all others.
Result<std::string> make_whole_body(const BenchOptions& options, std::span<const Prompt> prompts) {
  const auto wanted = options.endpoint == Endpoint::kPredict ? PromptKind::kInputs : PromptKind::kText;
  if (std::ranges::any_of(prompts, [wanted](const Prompt& prompt) { return prompt.kind != wanted; }))
    return invalid_argument(
        wanted == PromptKind::kInputs ? "a prediction needs lines with \"inputs\"" : "this endpoint needs lines with \"prompt\"",
        "endpoint");
  const std::string model = "{\"model\":" + quote(options.model);
  switch (options.endpoint) {
    case Endpoint::kRerank:
      return model + ",\"query\":" + prompts.front().json + ",\"documents\":" + list_of(prompts.subspan(1)) + "}";
    case Endpoint::kScore:
      return model + ",\"text_1\":" + prompts.front().json + ",\"text_2\":" + list_of(prompts.subspan(1)) + "}";
    case Endpoint::kPredict:
      return (options.model == "default" ? "{" : model + ",") + "\"encoding_format\":\"base64\",\"inputs\":" + prompts.front().json + "}";
    case Endpoint::kCompletions:
    case Endpoint::kChat:
    case Endpoint::kEmbeddings:
    case Endpoint::kClassify:
      break;
  }
  return model + ",\"input\":" + list_of(prompts) + "}";
}

// Texts of one request.
std::size_t prompts_of_request(const BenchOptions& options) {
  if (facts_of(options.endpoint).streams || options.endpoint == Endpoint::kPredict) return 1;
  const bool pairs = options.endpoint == Endpoint::kRerank || options.endpoint == Endpoint::kScore;
  return static_cast<std::size_t>(options.batch_size) + (pairs ? 1 : 0);
}

Result<std::string> make_body(const BenchOptions& options, const Prompt& prompt) {
  std::string body =
      fmt::format("{{\"model\":{},\"stream\":true,\"stream_options\":{{\"include_usage\":true}},\"temperature\":{},\"max_tokens\":{}",
                  quote(options.model), options.temperature, prompt.max_tokens);
  if (prompt.kind == PromptKind::kInputs) return invalid_argument("inputs need the predict endpoint", "endpoint");
  if (options.ignore_eos) body += ",\"ignore_eos\":true";
  if (options.endpoint == Endpoint::kCompletions) {
    if (prompt.kind == PromptKind::kMessages) return invalid_argument("messages need the chat endpoint", "endpoint");
    return body + ",\"prompt\":" + prompt.json + "}";
  }
  if (prompt.kind == PromptKind::kMessages) return body + ",\"messages\":" + prompt.json + "}";
  return body + ",\"messages\":[{\"role\":\"user\",\"content\":" + prompt.json + "}]}";
}

}  // namespace

Result<std::vector<std::string>> make_bodies(const BenchOptions& options, std::int64_t count) {
  std::mt19937_64 random(options.seed);
  std::vector<Prompt> prompts;
  const auto of_request = static_cast<std::int64_t>(prompts_of_request(options));
  if (options.prompts_file.empty()) {
    const std::int64_t different = (options.distinct > 0 ? std::min(options.distinct, count) : count) * of_request;
    for (std::int64_t i = 0; i < different; ++i)
      prompts.push_back(options.endpoint == Endpoint::kPredict ? synthetic_inputs(options, random) : synthetic_prompt(options, i, random));
  } else {
    auto read = read_prompts(options);
    if (!read) return read.error();
    prompts = std::move(*read);
  }
  std::vector<std::string> bodies;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    std::vector<Prompt> own;
    for (std::size_t k = 0; k < static_cast<std::size_t>(of_request); ++k)
      own.push_back(prompts[(i * static_cast<std::size_t>(of_request) + k) % prompts.size()]);
    auto body = facts_of(options.endpoint).streams ? make_body(options, own.front()) : make_whole_body(options, own);
    if (!body) return body.error();
    bodies.push_back(std::move(*body));
  }
  return bodies;
}

}  // namespace braid::bench
