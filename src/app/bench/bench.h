// `braid bench serve`: a token-aware load generator for OpenAI-compatible servers, and one of whole answers: vectors, ranks, classes and
// predictions. One thread, one coroutine a request.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::bench {

enum class Endpoint : std::uint8_t { kCompletions, kChat, kEmbeddings, kRerank, kScore, kClassify, kPredict };

struct EndpointFacts {
  std::string_view name;   // on the command line
  std::string_view route;  // behind /v1
  bool streams = false;    // else an answer comes whole, to some texts at once
};

const EndpointFacts& facts_of(Endpoint endpoint);
std::optional<Endpoint> endpoint_named(std::string_view name);

// A synthetic tensor of /v1/predict.
struct BenchTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

// "x=32x64"; nothing for anything else.
std::optional<BenchTensor> parse_tensor(const std::string& text);

// What a request must keep to count for goodput, in milliseconds.
struct Goodput {
  std::optional<double> ttft_ms;
  std::optional<double> tpot_ms;
  std::optional<double> e2el_ms;
};

struct BenchOptions {
  std::string base_url = "http://127.0.0.1:8000";  // with or without /v1
  Endpoint endpoint = Endpoint::kCompletions;
  std::string model = "default";
  std::string api_key;  // empty: no Authorization header
  std::int64_t num_prompts = 100;
  std::int64_t max_concurrency = 0;                               // requests under way at once; 0: no bound
  double request_rate = std::numeric_limits<double>::infinity();  // arrivals a second, Poisson; infinite: all at once
  std::int64_t input_len = 128;                                   // words of a synthetic prompt
  std::int64_t distinct = 0;                                      // different synthetic prompts, used in turn; 0: each request has its own
  std::int64_t batch_size = 1;                                    // texts of a request for vectors, ranks, scores or classes
  std::vector<BenchTensor> tensors;                               // synthetic inputs of /v1/predict
  std::int64_t output_len = 128;                                  // max_tokens, unless a prompt of the file has its own
  // JSON lines with "prompt" or "messages", and "max_tokens", or with the "inputs" of a prediction; empty: synthetic
  std::string prompts_file;
  bool ignore_eos = false;
  double temperature = 0.0;
  std::uint64_t seed = 0;                      // of the prompts and the arrivals
  std::chrono::milliseconds timeout{600'000};  // of one request
  std::int64_t warmup = 0;                     // requests before the measured ones
  bool verify = false;                         // asks each different prompt alone first; an answer with another text has failed
  std::optional<Goodput> goodput;
  std::string json_file;  // where the result goes as JSON too; empty: nowhere
  bool quiet = false;     // no report on the terminal
};

// "ttft:200", "tpot:50", "itl:50" (the same as tpot) or "e2el:10000" into `goodput`; false for anything else.
bool parse_goodput(const std::string& text, Goodput& goodput);

// Runs to the end and reports on standard output. 0 when every request succeeded, 1 when some failed or nothing could be sent; why is
// on standard error.
int run_bench(const BenchOptions& options);

}  // namespace braid::bench
