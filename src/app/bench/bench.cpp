#include "app/bench/bench.h"

#include "app/bench/load.h"
#include "app/bench/server_figures.h"
#include "app/bench/summary.h"
#include "app/bench/workload.h"
#include "braid/printable.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>
#include <unordered_map>

namespace braid::bench {

namespace asio = boost::asio;

namespace {

// In the order of Endpoint.
constexpr std::array kEndpoints = std::to_array<EndpointFacts>({{"completions", "/completions", true},
                                                                {"chat", "/chat/completions", true},
                                                                {"embeddings", "/embeddings"},
                                                                {"rerank", "/rerank"},
                                                                {"score", "/score"},
                                                                {"classify", "/classifications"},
                                                                {"predict", "/predict"}});

int fail(const Error& error) {
  fmt::print(stderr, "braid bench: {}\n", printable(error.message));
  return 1;
}

std::string request_head(const BenchOptions& options, const Target& target) {
  const EndpointFacts& facts = facts_of(options.endpoint);
  const bool is_v6 = target.host.find(':') != std::string::npos;
  std::string head = fmt::format("POST {}{} HTTP/1.1\r\nHost: {}{}{}:{}\r\n", target.path, facts.route, is_v6 ? "[" : "", target.host,
                                 is_v6 ? "]" : "", target.port);
  if (!options.api_key.empty()) head += fmt::format("Authorization: Bearer {}\r\n", options.api_key);
  return head + fmt::format("Content-Type: application/json\r\nAccept: {}\r\nContent-Length: ",
                            facts.streams ? "text/event-stream" : "application/json");
}

Result<std::vector<asio::ip::tcp::endpoint>> resolve(asio::io_context& io, const Target& target) {
  boost::system::error_code error;
  asio::ip::tcp::resolver resolver(io);
  std::vector<asio::ip::tcp::endpoint> endpoints;
  for (const auto& entry : resolver.resolve(target.host, target.port, error)) endpoints.push_back(entry.endpoint());
  if (error) return Error{ErrorCode::kIo, fmt::format("cannot resolve {}: {}", target.host, error.message()), "base-url"};
  return endpoints;
}

// A connection is a file: as many as the system lets this process have.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // without it, what does not fit fails as "connect" and is reported so
}

bool has_line_break(const std::string& text) { return text.find_first_of("\r\n") != std::string::npos; }

Result<void> check(const BenchOptions& options) {
  if (options.num_prompts < 1) return invalid_argument("the number of prompts must be at least 1", "num-prompts");
  if (options.input_len < 1) return invalid_argument("the input length must be at least 1", "input-len");
  if (options.output_len < 1) return invalid_argument("the output length must be at least 1", "output-len");
  if (!(options.request_rate > 0)) return invalid_argument("the request rate must be above 0", "request-rate");
  if (options.max_concurrency < 0) return invalid_argument("the concurrency must not be negative", "max-concurrency");
  if (options.distinct < 0) return invalid_argument("the number of different prompts must not be negative", "distinct");
  if (options.batch_size < 1) return invalid_argument("a request holds at least 1 text", "batch-size");
  if (options.endpoint == Endpoint::kPredict && options.tensors.empty() && options.prompts_file.empty())
    return invalid_argument("a prediction needs inputs: --tensor x=32x64, or --prompts-file", "tensor");
  if (options.warmup < 0) return invalid_argument("the number of warm-up requests must not be negative", "warmup");
  if (has_line_break(options.api_key) || has_line_break(options.base_url)) return invalid_argument("an option holds a line break");
  return {};
}

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return Error{ErrorCode::kIo, "cannot write " + path, "json"};
  return {};
}

// What the server answers to each different body when it has nothing else to do.
using References = std::unordered_map<std::string, std::string>;

Result<References> ask_alone(asio::io_context& io, Client& client, const std::vector<std::string>& bodies) {
  References references;
  for (const std::string& body : bodies) references.try_emplace(body);
  std::vector<std::string> different;
  for (const auto& [body, text] : references) different.push_back(body);
  LoadOptions one_by_one;
  one_by_one.request_rate = std::numeric_limits<double>::infinity();
  one_by_one.max_concurrency = 1;
  std::vector<Outcome> outcomes;
  Load(io, client, different, one_by_one).run(outcomes);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    if (!outcome.failure.empty())
      return Error{ErrorCode::kIo, fmt::format("a request alone failed: {}: {}", outcome.failure, outcome.message), "verify"};
    references[different[i]] = outcome.text;
  }
  return references;
}

void compare(const References& references, const std::vector<std::string>& bodies, std::vector<Outcome>& outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    Outcome& outcome = outcomes[i];
    const std::string& expected = references.at(bodies[i]);
    if (!outcome.failure.empty() || outcome.text == expected) continue;
    outcome.failure = "wrong_text";
    outcome.message = fmt::format("\"{}\" where the request alone gave \"{}\"", outcome.text, expected);
  }
}

}  // namespace

const EndpointFacts& facts_of(Endpoint endpoint) { return kEndpoints[static_cast<std::size_t>(endpoint)]; }

std::optional<Endpoint> endpoint_named(std::string_view name) {
  const auto found = std::ranges::find(kEndpoints, name, &EndpointFacts::name);
  if (found == kEndpoints.end()) return std::nullopt;
  return static_cast<Endpoint>(found - kEndpoints.begin());
}

std::optional<BenchTensor> parse_tensor(const std::string& text) {
  constexpr std::int64_t kMostValues = std::int64_t{1} << 24;
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) return std::nullopt;
  BenchTensor tensor{text.substr(0, equals), {}};
  std::int64_t values = 1;
  for (std::size_t begin = equals + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    std::int64_t extent = 0;
    const auto parsed = std::from_chars(text.data() + begin, text.data() + end, extent);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + end || extent < 1 || extent > kMostValues / values) return std::nullopt;
    values *= extent;
    tensor.shape.push_back(extent);
    begin = end + 1;
  }
  return tensor;
}

bool parse_goodput(const std::string& text, Goodput& goodput) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) return false;
  const std::string name = text.substr(0, colon);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(value >= 0)) return false;
  if (name == "ttft") {
    goodput.ttft_ms = value;
  } else if (name == "tpot" || name == "itl") {
    goodput.tpot_ms = value;
  } else if (name == "e2el") {
    goodput.e2el_ms = value;
  } else {
    return false;
  }
  return true;
}

int run_bench(const BenchOptions& options) {
  if (auto checked = check(options); !checked) return fail(checked.error());
  const auto target = parse_target(options.base_url);
  if (!target) return fail(target.error());
  asio::io_context io(1);
  auto endpoints = resolve(io, *target);
  if (!endpoints) return fail(endpoints.error());
  auto bodies = make_bodies(options, options.num_prompts + options.warmup);
  if (!bodies) return fail(bodies.error());
  raise_file_limit();

  const auto first_measured = bodies->begin() + static_cast<std::ptrdiff_t>(options.warmup);
  const std::vector<std::string> warmup_bodies(bodies->begin(), first_measured);
  bodies->erase(bodies->begin(), first_measured);
  const bool streams = facts_of(options.endpoint).streams;
  Client client(io, *endpoints, request_head(options, *target), options.timeout, streams);
  std::vector<Outcome> outcomes;
  LoadOptions warmup_load;
  warmup_load.request_rate = std::numeric_limits<double>::infinity();
  warmup_load.max_concurrency = options.max_concurrency;
  if (options.warmup > 0) Load(io, client, warmup_bodies, warmup_load).run(outcomes);

  References references;
  if (options.verify) {
    auto asked = ask_alone(io, client, *bodies);
    if (!asked) return fail(asked.error());
    references = std::move(*asked);
  }

  const bool shows_progress = !options.quiet && isatty(STDERR_FILENO) != 0;
  Load load(io, client, *bodies, {options.request_rate, options.max_concurrency, options.seed, shows_progress});
  const auto figures = [&] { return streams ? std::nullopt : read_figures(*endpoints, *target, options.api_key); };
  const std::optional<ServerFigures> before = figures();
  const double seconds = load.run(outcomes);
  const std::optional<ServerFigures> after = figures();
  if (options.verify) compare(references, *bodies, outcomes);
  Summary summary = summarise(outcomes, seconds, options.goodput);
  if (!streams) summary.items = summary.completed * (options.endpoint == Endpoint::kPredict ? 1 : options.batch_size);
  if (before && after) summary.server = {.cpu_seconds = after->cpu_seconds - before->cpu_seconds, .resident_bytes = after->resident_bytes};
  if (!options.quiet) std::fputs(to_report(summary).c_str(), stdout);
  if (!options.json_file.empty()) {
    if (auto written = write_file(options.json_file, to_json(summary, options)); !written) return fail(written.error());
  }
  return summary.failures.empty() ? 0 : 1;
}

}  // namespace braid::bench
