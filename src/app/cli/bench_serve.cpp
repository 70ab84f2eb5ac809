#include "app/cli/commands.h"
#include "app/option_types.h"

#include <fmt/format.h>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace braid::app {

CLI::App* add_bench(CLI::App& app, bench::BenchOptions& options) {
  constexpr std::int64_t kMost = 1'000'000'000;
  CLI::App* group = app.add_subcommand("bench", "Measure a server");
  group->require_subcommand(1);
  CLI::App* serve = group->add_subcommand("serve", "Load an OpenAI-compatible server and report latencies and throughput");
  serve->add_option("--base-url", options.base_url, "Where the server is, with or without /v1")->capture_default_str();
  serve
      ->add_option_function<std::string>(
          "--endpoint",
          [&options](const std::string& name) { options.endpoint = bench::endpoint_named(name).value_or(bench::Endpoint::kCompletions); },
          "Route to ask: completions, chat, embeddings, rerank, score, classify or predict")
      ->default_str("completions")
      ->check(CLI::IsMember({"completions", "chat", "embeddings", "rerank", "score", "classify", "predict"}));
  serve->add_option("--model", options.model, "Model to name in requests")->capture_default_str();
  serve->add_option("--api-key", options.api_key, "Sent as a bearer token");
  add_count(*serve, "--num-prompts", options.num_prompts, 1, kMost, "Requests to send");
  add_count(*serve, "--max-concurrency", options.max_concurrency, 0, kMost, "Requests under way at once; 0: no bound");
  add_number(*serve, "--request-rate", options.request_rate, 1e-6, std::numeric_limits<double>::infinity(),
             "Arrivals a second (Poisson); inf: all at once");
  add_count(*serve, "--input-len", options.input_len, 1, kMost, "Words of a synthetic prompt");
  add_count(*serve, "--distinct", options.distinct, 0, kMost, "Different synthetic prompts, used in turn; 0: each request has its own");
  add_count(*serve, "--batch-size", options.batch_size, 1, kMost, "Texts of a request for vectors, ranks, scores or classes");
  serve
      ->add_option_function<std::vector<std::string>>(
          "--tensor",
          [&options](const std::vector<std::string>& tensors) {
    for (const std::string& text : tensors) {
      std::optional<bench::BenchTensor> tensor = bench::parse_tensor(text);
      if (!tensor) throw CLI::ValidationError("--tensor", fmt::format("'{}' is no input: write its name and its sizes, x=32x64", text));
      options.tensors.push_back(std::move(*tensor));
    }
          },
          "Synthetic inputs of a prediction, by name and sizes: x=32x64")
      ->type_name("NAME=SIZES");
  add_count(*serve, "--output-len", options.output_len, 1, kMost, "Tokens of an answer at most");
  serve->add_option("--prompts-file", options.prompts_file,
                    "JSON lines with \"prompt\", \"messages\" or \"inputs\"; synthetic ones if not given");
  serve->add_flag("--ignore-eos", options.ignore_eos, "Answers always have their full length");
  add_number(*serve, "--temperature", options.temperature, 0.0, 100.0, "Sampling temperature");
  serve->add_option("--seed", options.seed, "Of prompts and arrivals")->capture_default_str();
  add_duration(*serve, "--timeout", options.timeout, "Of one request");
  add_count(*serve, "--warmup", options.warmup, 0, kMost, "Requests before the measured ones");
  serve->add_flag("--verify", options.verify, "Ask each different prompt alone first; an answer with another text counts as failed");
  serve
      ->add_option_function<std::vector<std::string>>(
          "--goodput",
          [&options](const std::vector<std::string>& bounds) {
    for (const std::string& bound : bounds)
      if (!bench::parse_goodput(bound, options.goodput ? *options.goodput : options.goodput.emplace()))
        throw CLI::ValidationError("--goodput", fmt::format("'{}' is no bound: write ttft:MS, tpot:MS or e2el:MS", bound));
          },
          "Bounds in milliseconds that a good request keeps: ttft:200 tpot:50 e2el:10000")
      ->type_name("KIND:MS");
  serve->add_option("--json", options.json_file, "File for the result as JSON");
  serve->add_flag("--quiet", options.quiet, "No report on the terminal");
  return group;
}

}  // namespace braid::app
