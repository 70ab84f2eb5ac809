#include "app/bench/workload.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <random>
#include <simdjson.h>
#include <string_view>

namespace braid::bench {
namespace {

constexpr std::array<std::string_view, 48> kWords = {
    "river",  "stone",  "quiet",   "lamp",    "winter",  "garden", "paper",  "engine", "cloud",  "bread",   "copper", "window",
    "forest", "music",  "silver",  "bridge",  "morning", "salt",   "letter", "ocean",  "ladder", "candle",  "market", "feather",
    "yellow", "train",  "harbor",  "winter",  "pocket",  "mirror", "summer", "basket", "violin", "thunder", "carpet", "island",
    "pepper", "rocket", "blanket", "orchard", "signal",  "turtle", "velvet", "wagon",  "anchor", "button",  "cactus", "drum"};

constexpr std::size_t kMaxLine = std::size_t{64} << 20U;

struct Prompt {
  std::string json;  // a string, or the list of messages
  bool is_messages = false;
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
  return {quote(text), false, options.output_len};
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
  if (json["messages"].get(messages) == simdjson::SUCCESS) {
    prompt.is_messages = true;
    prompt.json = simdjson::minify(messages);
  } else if (json["prompt"].get(text) == simdjson::SUCCESS) {
    prompt.json = quote(text);
  } else {
    return wrong_file(options, "a line has neither \"prompt\" nor \"messages\"");
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

Result<std::string> make_body(const BenchOptions& options, const Prompt& prompt) {
  std::string body =
      fmt::format("{{\"model\":{},\"stream\":true,\"stream_options\":{{\"include_usage\":true}},\"temperature\":{},\"max_tokens\":{}",
                  quote(options.model), options.temperature, prompt.max_tokens);
  if (options.ignore_eos) body += ",\"ignore_eos\":true";
  if (options.endpoint == Endpoint::kCompletions) {
    if (prompt.is_messages) return invalid_argument("messages need the chat endpoint", "endpoint");
    return body + ",\"prompt\":" + prompt.json + "}";
  }
  if (prompt.is_messages) return body + ",\"messages\":" + prompt.json + "}";
  return body + ",\"messages\":[{\"role\":\"user\",\"content\":" + prompt.json + "}]}";
}

}  // namespace

Result<std::vector<std::string>> make_bodies(const BenchOptions& options, std::int64_t count) {
  std::mt19937_64 random(options.seed);
  std::vector<Prompt> prompts;
  if (options.prompts_file.empty()) {
    const std::int64_t different = options.distinct > 0 ? std::min(options.distinct, count) : count;
    for (std::int64_t i = 0; i < different; ++i) prompts.push_back(synthetic_prompt(options, i, random));
  } else {
    auto read = read_prompts(options);
    if (!read) return read.error();
    prompts = std::move(*read);
  }
  std::vector<std::string> bodies;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    auto body = make_body(options, prompts[i % prompts.size()]);
    if (!body) return body.error();
    bodies.push_back(std::move(*body));
  }
  return bodies;
}

}  // namespace braid::bench
