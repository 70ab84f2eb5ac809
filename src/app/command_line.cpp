#include "app/command_line.h"

#include "app/config_file.h"
#include "app/embedded_model.h"
#include "app/option_types.h"
#include "app/version.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace braid::app {
namespace {

constexpr std::int32_t kMostTokens = 1 << 24;

void add_model_options(CLI::App& app, ModelOptions& options) {
  add_integer(app, "--ctx", options.context, 1, kMostTokens, "Context of one sequence in tokens; the model's own if not given");
  add_size(app, "--kv-memory", options.kv_memory, "Memory of the KV pool, such as 4GiB; half of what is left after load if not given");
  app.add_option("--chat-template", options.chat_template, "Jinja, tokenizer_config.json or chat_template.json file to use instead of the model's own template");
  add_integer(app, "--max-kv-size", options.max_kv_size, 0, kMostTokens,
              "Positions that a token sees: the first few and the last ones; older ones give up their KV memory; 0: all");
  add_kv_type(app, "--kv-dtype", options.kv_type, "Type of keys and values in the pool: f32, f16, bf16 or int8");
  add_float_type(app, "--dtype", options.float_type, "Arithmetic of F32, F16 and BF16 weights: auto (as stored), f32, bf16, f16 or int8");
  add_integer(app, "--block-size", options.block_size, 8, 64, "Tokens of one KV block: 8, 16, 32 or 64")
      ->check(CLI::IsMember({"8", "16", "32", "64"}));
  add_integer(app, "--threads", options.threads, 0, 1024, "Compute threads; 0: one for each usable CPU");
  add_isa(app, "--isa", options.isa, "Kernel tier: scalar, avx2, avx512 or amx; the machine's best if not given")
      ->envname("BRAID_ISA");
}

void add_cache_options(CLI::App& app, ServeOptions& options) {
  app.add_option_function<std::string>(
         "--prefix-cache", [&options](const std::string& state) { options.batch.prefix_cache = state == "on"; },
         "Requests that begin alike share what has been computed: on or off")
      ->default_str("on")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--kv-disk", options.disk.directory, "Folder where blocks of the prefix cache go on living; none if not given");
  add_size(app, "--kv-disk-limit", options.disk.limit, "Most bytes that the folder may take");
  add_duration(app, "--kv-disk-ttl", options.disk.ttl, "Age at which a block on disk is no longer used");
  app.add_option_function<std::string>(
         "--kv-disk-read", [&options](const std::string& when) { options.disk.always = when == "always"; },
         "Whether a prefix is read from disk also when computing it has been faster lately: auto (no) or always")
      ->default_str("auto")
      ->check(CLI::IsMember({"auto", "always"}));
  app.add_option_function<std::string>(
         "--kv-disk-write", [&options](const std::string& when) { options.disk.write_through = when == "through"; },
         "When blocks are written: evict (they leave the pool) or through (they are full)")
      ->default_str("evict")
      ->check(CLI::IsMember({"evict", "through"}));
  app.add_flag("--kv-verify", options.batch.kv_verify,
               "Compute what the cache holds and compare: the server aborts at the first difference. For finding faults; nothing is faster");
}

CLI::App* add_serve(CLI::App& app, ServeOptions& options, std::string& config) {
  CLI::App* serve = app.add_subcommand("serve", "Serve a model over HTTP with the OpenAI API");
  serve->add_option("model", options.model.model, "A GGUF file (of a split one the first part); the embedded model if not given");
  serve->add_option("--config", config, "YAML file with these options as keys; the command line wins");
  CLI::App& http = *serve->add_option_group("Listening");
  http.add_option("--host", options.host, "Address to listen on")->capture_default_str();
  add_port(http, "--port", options.port, "Port to listen on; 0 picks a free one and prints it");
  http.add_option("--alias", options.alias, "The model's id in the API; its file name if not given");
  add_duration(http, "--drain-timeout", options.drain_timeout, "How long running answers may go on after SIGTERM");
  CLI::App& model = *serve->add_option_group("Model and memory");
  add_model_options(model, options.model);
  model.add_flag("--no-model", options.no_model, "Start without a model");
  model.add_flag("--no-warmup", options.no_warmup, "Skip the first prefill and decode before /readyz");
  CLI::App& batch = *serve->add_option_group("Batching");
  add_integer(batch, "--max-batch", options.batch.max_batch, 1, 65536, "Sequences in one step");
  add_integer(batch, "--max-batch-tokens", options.batch.max_batch_tokens, 2, 1 << 20, "Tokens in one step");
  add_integer(batch, "--prefill-slice-ms", options.batch.prefill_slice_ms, 1, 60'000,
              "Milliseconds that prefill may add to a step that decodes");
  add_integer(batch, "--max-waiting", options.batch.max_waiting, 1, 1 << 24, "Requests that may wait; more are answered with 429");
  add_duration(batch, "--priority-ageing", options.batch.priority_ageing,
               "A request that has waited so much longer goes before one of the next better priority");
  add_cache_options(*serve->add_option_group("Cache"), options);
  serve->add_option("--log-level", options.log_level, "trace, debug, info, warning, error or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
  return serve;
}

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* run = app.add_subcommand("run", "Answer one prompt, or chat, in the terminal");
  run->add_option("model", options.model.model, "A GGUF file; the embedded model if not given");
  run->add_option("prompt", options.prompt, "What to answer; a chat if not given");
  run->add_option("--system", options.system, "System prompt");
  add_integer(*run, "--max-tokens", options.max_tokens, 0, kMostTokens, "Longest answer in tokens; 0: what the context leaves");
  add_number(*run, "--temperature", options.temperature, 0.0, 100.0, "0 always takes the most likely token");
  add_number(*run, "--top-p", options.top_p, 1e-6, 1.0, "Take from the most likely tokens of this total probability");
  add_integer(*run, "--top-k", options.top_k, 0, kMostTokens, "Take from this many most likely tokens; 0: all");
  add_number(*run, "--min-p", options.min_p, 0.0, 1.0, "Leave out tokens less likely than this share of the best");
  add_seed(*run, "--seed", options.seed, "Makes the answer repeatable");
  add_model_options(*run, options.model);
  run->footer("With one argument: a name that ends in .gguf, or that exists, is the model; anything else is the prompt.");
  return run;
}

CLI::App* add_info(CLI::App& app, ModelReportOptions& options) {
  CLI::App* info = app.add_subcommand("info", "Show a model's metadata, tensors and the memory it will take");
  info->add_option("model", options.model.model, "A GGUF file; the embedded model if not given");
  add_integer(*info, "--max-batch", options.max_batch, 1, 65536, "Sequences in one step");
  add_model_options(*info, options.model);
  return info;
}

CLI::App* add_cache(CLI::App& app, CacheExportOptions& to, CacheImportOptions& from) {
  CLI::App* group = app.add_subcommand("cache", "Move the keys and values of a prompt between servers and tools");
  group->require_subcommand(1);
  CLI::App* out = group->add_subcommand("export", "Compute a prompt and write its keys and values as safetensors");
  out->add_option("model", to.model.model, "A GGUF file, or braid-demo for the embedded model")->required();
  out->add_option("output", to.output, "File to write")->required();
  CLI::Option* prompt = out->add_option("--prompt", to.prompt, "Text of the prompt, as /v1/completions takes it");
  out->add_option("--prompt-file", to.prompt_file, "File with the text")->excludes(prompt);
  add_model_options(*out, to.model);
  CLI::App* in = group->add_subcommand("import", "Put such a file into the folder of a server that is not running");
  in->add_option("model", from.model.model, "The model it was computed with")->required();
  in->add_option("input", from.input, "File to read")->required();
  in->add_option("--kv-disk", from.disk.directory, "Folder that the server will be given")->required();
  add_size(*in, "--kv-disk-limit", from.disk.limit, "Most bytes that the folder may take");
  in->add_option("--cache-salt", from.cache_salt, "cache_salt of the requests that may use it");
  add_model_options(*in, from.model);
  return group;
}

CLI::App* add_bench(CLI::App& app, bench::BenchOptions& options) {
  constexpr std::int64_t kMost = 1'000'000'000;
  CLI::App* group = app.add_subcommand("bench", "Measure a server");
  group->require_subcommand(1);
  CLI::App* serve = group->add_subcommand("serve", "Load an OpenAI-compatible server and report latencies and throughput");
  serve->add_option("--base-url", options.base_url, "Where the server is, with or without /v1")->capture_default_str();
  serve
      ->add_option_function<std::string>(
          "--endpoint",
          [&options](const std::string& name) {
            options.endpoint = name == "chat" ? bench::Endpoint::kChat : bench::Endpoint::kCompletions;
          },
          "Route to ask: completions or chat")
      ->default_str("completions")
      ->check(CLI::IsMember({"completions", "chat"}));
  serve->add_option("--model", options.model, "Model to name in requests")->capture_default_str();
  serve->add_option("--api-key", options.api_key, "Sent as a bearer token");
  add_count(*serve, "--num-prompts", options.num_prompts, 1, kMost, "Requests to send");
  add_count(*serve, "--max-concurrency", options.max_concurrency, 0, kMost, "Requests under way at once; 0: no bound");
  add_number(*serve, "--request-rate", options.request_rate, 1e-6, std::numeric_limits<double>::infinity(),
             "Arrivals a second (Poisson); inf: all at once");
  add_count(*serve, "--input-len", options.input_len, 1, kMost, "Words of a synthetic prompt");
  add_count(*serve, "--output-len", options.output_len, 1, kMost, "Tokens of an answer at most");
  serve->add_option("--prompts-file", options.prompts_file, "JSON lines with \"prompt\" or \"messages\"; synthetic prompts if not given");
  serve->add_flag("--ignore-eos", options.ignore_eos, "Answers always have their full length");
  add_number(*serve, "--temperature", options.temperature, 0.0, 100.0, "Sampling temperature");
  serve->add_option("--seed", options.seed, "Of prompts and arrivals")->capture_default_str();
  add_duration(*serve, "--timeout", options.timeout, "Of one request");
  add_count(*serve, "--warmup", options.warmup, 0, kMost, "Requests before the measured ones");
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

// `braid run "Tell me a story"` means the embedded model.
void settle_run_arguments(RunOptions& options) {
  if (!options.prompt.empty() || options.model.model.empty()) return;
  std::error_code ignored;
  if (options.model.model.ends_with(".gguf") || options.model.model == kEmbeddedModelName ||
      std::filesystem::exists(options.model.model, ignored))
    return;
  options.prompt = std::move(options.model.model);
  options.model.model.clear();
}

// The command that was named, with the commands above it: "braid bench serve".
std::pair<const CLI::App*, std::string> named_command(const CLI::App& app) {
  const CLI::App* command = &app;
  std::string path = "braid";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  return {command, path};
}

Farewell mistake(const CLI::App& app, const std::string& message) {
  const std::string command = named_command(app).second;
  return {2, fmt::format("{}: {}\nTry '{} --help'.\n", command, message, command)};
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  CLI::App app("braid: an LLM inference server for CPUs", "braid");
  app.set_version_flag("--version", std::string("braid ") + kVersion);
  app.footer("'braid COMMAND --help' shows a command's options.");

  ServeOptions serve_options;
  RunOptions run_options;
  ModelReportOptions info_options;
  std::string config;
  const CLI::App* serve = add_serve(app, serve_options, config);
  const CLI::App* run = add_run(app, run_options);
  const CLI::App* info = add_info(app, info_options);
  bench::BenchOptions bench_options;
  const CLI::App* bench = add_bench(app, bench_options);
  CacheExportOptions export_options;
  CacheImportOptions import_options;
  const CLI::App* cache = add_cache(app, export_options, import_options);

  try {
    app.parse(argc, argv);
    if (!config.empty()) apply_config_file(*app.get_subcommand("serve"), config);
  } catch (const CLI::CallForHelp&) {
    const auto [command, path] = named_command(app);
    return Farewell{0, command->help(command == &app ? "" : path.substr(0, path.rfind(' ')))};
  } catch (const CLI::CallForVersion&) {
    return Farewell{0, fmt::format("braid {}\n", kVersion)};
  } catch (const CLI::ParseError& e) {
    return mistake(app, e.what());
  }

  if (*serve) {
    if (serve_options.no_model && !serve_options.model.model.empty())
      return mistake(app, fmt::format("--no-model contradicts the model '{}'", serve_options.model.model));
    if (serve_options.batch.max_batch_tokens <= serve_options.batch.max_batch)
      return mistake(app, fmt::format("--max-batch-tokens {} must be more than --max-batch {}, or a full batch leaves no room for prompts",
                                      serve_options.batch.max_batch_tokens, serve_options.batch.max_batch));
    if (!serve_options.disk.directory.empty() && !serve_options.batch.prefix_cache)
      return mistake(app, "--kv-disk contradicts --prefix-cache off");
    return serve_options;
  }
  if (*run) {
    settle_run_arguments(run_options);
    return run_options;
  }
  if (*info) return info_options;
  if (*bench) return bench_options;
  if (*cache && *cache->get_subcommand("import")) return import_options;
  if (*cache && export_options.prompt.empty() && export_options.prompt_file.empty())
    return mistake(app, "--prompt or --prompt-file is needed");
  if (*cache) return export_options;
  return mistake(app, "a command is needed: serve, run, info, cache or bench");
}

}  // namespace braid::app
