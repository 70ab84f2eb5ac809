#include "app/host_list.h"
#include "app/parsed_command.h"
#include "app/served_models.h"
#include "support/folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

using testing::HasSubstr;

TEST(CommandLine, ServeHasDefaults) {
  const auto options = std::get<ServeOptions>(parse({"serve"}));
  EXPECT_EQ(options.http.listen.front().host, "127.0.0.1");
  EXPECT_EQ(options.http.listen.front().port, 8000);
  EXPECT_EQ(options.batch.max_batch, 256);
  EXPECT_EQ(options.batch.max_batch_tokens, 4096);
  EXPECT_EQ(options.batch.prefill_slice_ms, 35);
  EXPECT_EQ(options.batch.max_waiting, 16384);
  EXPECT_EQ(options.model.block_size, 16);
  EXPECT_EQ(options.drain_timeout, std::chrono::seconds(25));
  EXPECT_EQ(options.drain_delay, std::chrono::seconds(0));
  EXPECT_TRUE(options.files.empty());
  EXPECT_FALSE(options.model.kv_memory.has_value());
}

TEST(CommandLine, ModelsAreManaged) {
  using Action = ModelCommandOptions::Action;
  const auto options = [](std::initializer_list<const char*> arguments) { return std::get<ModelCommandOptions>(parse(arguments)); };
  const auto pull = options({"pull", "llama3.2:1b", "--insecure", "--data-dir", "/data", "--json"});
  EXPECT_EQ(pull.action, Action::kPull);
  EXPECT_EQ(pull.names, std::vector<std::string>{"llama3.2:1b"});
  EXPECT_TRUE(pull.insecure && pull.json);
  EXPECT_EQ(pull.data.folder, "/data");
  EXPECT_EQ(options({"cp", "a", "b"}).names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options({"rm", "a", "b", "c"}).names.size(), 3U);
  EXPECT_EQ(options({"ls"}).action, Action::kList);
  EXPECT_EQ(options({"ps"}).action, Action::kRunning);
  EXPECT_EQ(options({"create", "mine"}).modelfile, "Modelfile");
  EXPECT_EQ(options({"create", "mine", "-f", "-", "-q", "q4_k_m"}).quantize, "q4_k_m");
  EXPECT_THAT(mistake({"cp", "a"}), HasSubstr("braid cp"));
  EXPECT_THAT(mistake({"pull"}), HasSubstr("name"));
  EXPECT_THAT(mistake({"completion", "tcsh"}), HasSubstr("bash"));
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--ollama"})).http.listen.back().port, 11434);
}

// The path of a file with this text.
std::string written(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

TEST(CommandLine, LaunchIsServeWithItsRanks) {
  const auto options = std::get<ServeOptions>(parse({"launch", "--ranks", "4", "serve", "m.gguf", "--port", "0"}));
  EXPECT_EQ(options.model.ranks.count, 4);
  EXPECT_EQ(options.files, std::vector<std::string>{"m.gguf"});
  EXPECT_EQ(options.http.listen.front().port, 0);
  EXPECT_THAT(mistake({"launch", "--ranks", "many", "serve", "m.gguf"}), HasSubstr("braid serve: --ranks"));
  EXPECT_THAT(mistake({"launch", "--ranks", "2", "serve", "m.gguf", "--draft", "d.gguf"}), HasSubstr("--ranks contradicts --draft"));
  const test::Folder folder;
  const std::string hosts = written(folder / "hosts", "localhost slots=2\n");
  EXPECT_THAT(mistake({"launch", "--ranks", "2", "--hostfile", hosts.c_str(), "serve", "m.gguf"}), HasSubstr("--kv-memory"));
}

TEST(Hostfile, IsMpirunsOrAListOfMachines) {
  const test::Folder folder;
  const std::string own = written(folder / "own", "a slots=2\nb\n");
  EXPECT_EQ(read_hostfile(own).value().file, own);
  const auto listed =
      read_hostfile(written(folder / "list.json", R"([{"ssh": "b.local", "ips": ["10.0.0.2"]}, {"ssh": "a"}, {"ssh": "b.local"}])"));
  ASSERT_TRUE(listed.has_value()) << listed.error().message;
  EXPECT_EQ(listed->hosts, "b.local:2,a:1");
  EXPECT_EQ(listed->file, "");
  for (const char* bad : {"[", "[]", R"([{"ips": []}])", R"([{"ssh": "a,b"}])", R"([{"ssh": "-x"}])"})
    EXPECT_EQ(read_hostfile(written(folder / "bad.json", bad)).error().code, ErrorCode::kInvalidArgument) << bad;
}

TEST(CommandLine, ServeTakesItsOptions) {
  const auto options = std::get<ServeOptions>(
      parse({"serve",       "m.gguf",      "--host",       "0.0.0.0", "--port",          "0",     "--threads=3", "--ctx",  "512",
             "--kv-memory", "2GiB",        "--kv-dtype",   "f32",     "--drain-timeout", "500ms", "--isa",       "scalar", "--alias",
             "m",           "--no-warmup", "--block-size", "32"}));
  EXPECT_EQ(options.files, std::vector<std::string>{"m.gguf"});
  EXPECT_EQ(options.http.listen.front().host, "0.0.0.0");
  EXPECT_EQ(options.http.listen.front().port, 0);
  EXPECT_EQ(options.model.threads, 3);
  EXPECT_EQ(options.model.context, 512);
  EXPECT_EQ(options.model.kv_memory, 2ULL << 30U);
  EXPECT_EQ(options.model.kv_type, kernels::KvType::kF32);
  EXPECT_EQ(options.model.isa, kernels::Isa::kScalar);
  EXPECT_EQ(options.model.block_size, 32);
  EXPECT_EQ(options.drain_timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(options.aliases, std::vector<std::string>{"m"});
  EXPECT_TRUE(options.no_warmup);
}

TEST(CommandLine, ArithmeticOfFloatWeightsIsAsStoredUnlessNamed) {
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve"})).model.float_type, std::nullopt);
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--dtype", "auto"})).model.float_type, std::nullopt);
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--dtype", "bf16"})).model.float_type, kernels::WeightType::kBF16);
  EXPECT_EQ(std::get<RunOptions>(parse({"run", "--dtype", "int8"})).model.float_type, kernels::WeightType::kQ8_0);
  EXPECT_FALSE(std::get<ServeOptions>(parse({"serve"})).model.fast_weights);
  EXPECT_TRUE(std::get<ServeOptions>(parse({"serve", "--fast-weights"})).model.fast_weights);
}

TEST(CommandLine, KeysAndValuesAreOfTheTiersOwnTypeUnlessNamed) {
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve"})).model.kv_type, std::nullopt);
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--kv-dtype", "auto"})).model.kv_type, std::nullopt);
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--kv-dtype", "int8"})).model.kv_type, kernels::KvType::kInt8);
}

TEST(CommandLine, ThreadsArePinnedAndPagesHugeAsAsked) {
  const auto usual = std::get<ServeOptions>(parse({"serve"})).model;
  EXPECT_FALSE(usual.pin_threads);
  EXPECT_EQ(usual.huge_pages, files::HugePages::kTransparent);
  const auto asked = std::get<ServeOptions>(parse({"serve", "--pin-threads", "--huge-pages", "explicit"})).model;
  EXPECT_TRUE(asked.pin_threads);
  EXPECT_EQ(asked.huge_pages, files::HugePages::kExplicit);
  EXPECT_EQ(std::get<RunOptions>(parse({"run", "--huge-pages", "off"})).model.huge_pages, files::HugePages::kOff);
}

TEST(CommandLine, AddressesAddUpOrReplaceTheDefault) {
  const auto hosts = [](std::initializer_list<const char*> arguments) {
    const auto options = std::get<ServeOptions>(parse(arguments));
    std::string text;
    for (const net::TcpAddress& address : options.http.listen) text += address.host + " " + std::to_string(address.port) + ";";
    return text;
  };
  EXPECT_EQ(hosts({"serve"}), "127.0.0.1 8000;");
  EXPECT_EQ(hosts({"serve", "--listen", "[::1]:80", "localhost:81"}), "::1 80;localhost 81;");
  EXPECT_EQ(hosts({"serve", "--listen", "0.0.0.0:80", "--port", "90"}), "127.0.0.1 90;0.0.0.0 80;");
  EXPECT_EQ(hosts({"serve", "--unix-socket", "/run/s"}), "");
  EXPECT_EQ(hosts({"serve", "--unix-socket", "/run/s", "--host", "::"}), ":: 8000;");
  for (const char* wrong : {"80", "host:", "host:70000", "::1:80", ":80", "[::1]"})
    EXPECT_THAT(mistake({"serve", "--listen", wrong}), HasSubstr("--listen")) << wrong;
}

TEST(CommandLine, UnixSocketsHaveModeAndUsers) {
  const auto options =
      std::get<ServeOptions>(parse({"serve", "--unix-socket", "/run/s", "--unix-mode", "0660", "--unix-users", "root,1234"}));
  EXPECT_EQ(options.http.unix_mode, 0660U);
  EXPECT_EQ(options.http.unix_users, (std::vector<uid_t>{0, 1234}));
  EXPECT_THAT(mistake({"serve", "--unix-mode", "rw"}), HasSubstr("--unix-mode: 'rw' is not a mode"));
  EXPECT_THAT(mistake({"serve", "--unix-users", "no-such-user"}), HasSubstr("there is no user 'no-such-user'"));
}

TEST(CommandLine, LimitsAreChecked) {
  const auto options = std::get<ServeOptions>(
      parse({"serve", "--max-body-bytes", "1MiB", "--client-buffer", "16KiB", "--queue-timeout", "2s", "--tcp-keepalive", "0s"}));
  EXPECT_EQ(options.http.max_body_bytes, 1U << 20U);
  EXPECT_EQ(options.http.client_buffer_bytes, 16U << 10U);
  EXPECT_EQ(options.http.queue_timeout, std::chrono::seconds(2));
  EXPECT_EQ(options.http.tcp_keepalive.count(), 0);
  EXPECT_THAT(mistake({"serve", "--max-header-bytes", "1"}), HasSubstr("--max-header-bytes: '1' is not from"));
  EXPECT_THAT(mistake({"serve", "--client-buffer", "1"}), HasSubstr("--client-buffer: '1' is not from"));
  EXPECT_THAT(mistake({"serve", "--body-timeout", "0s"}), HasSubstr("--body-timeout"));
}

TEST(CommandLine, OptionsThatNeedEachOtherAreNamed) {
  EXPECT_THAT(mistake({"serve", "--tls-cert", "c.pem"}), HasSubstr("--tls-cert and --tls-key go together"));
  EXPECT_THAT(mistake({"serve", "--takeover", "/run/c"}), HasSubstr("--takeover needs --kv-memory"));
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--takeover", "/run/c", "--kv-memory", "1GiB"})).takeover, "/run/c");
}

TEST(CommandLine, ServeTakesItsDiskCache) {
  const auto plain = std::get<ServeOptions>(parse({"serve"}));
  EXPECT_TRUE(plain.disk.directory.empty());
  EXPECT_FALSE(plain.disk.write_through || plain.batch.kv_verify);
  const auto options = std::get<ServeOptions>(parse(
      {"serve", "--kv-disk", "/tmp/cache", "--kv-disk-limit", "2GB", "--kv-disk-ttl", "2d", "--kv-disk-write", "through", "--kv-verify"}));
  EXPECT_EQ(options.disk.directory, "/tmp/cache");
  EXPECT_EQ(options.disk.limit, 2'000'000'000U);
  EXPECT_EQ(options.disk.ttl, std::chrono::days(2));
  EXPECT_TRUE(options.disk.write_through.value_or(false) && options.batch.kv_verify);
  EXPECT_THAT(mistake({"serve", "--kv-disk", "x", "--prefix-cache", "off"}), HasSubstr("--kv-disk"));
  EXPECT_THAT(mistake({"serve", "--kv-disk-write", "never"}), HasSubstr("--kv-disk-write"));
}

TEST(CommandLine, SharesThePrefixCacheInARedis) {
  EXPECT_FALSE(std::get<ServeOptions>(parse({"serve"})).shared_cache.redis.has_value());
  const auto options = std::get<ServeOptions>(parse({"serve", "--kv-redis", "redis://:secret@cache:7000/1", "--kv-redis-timeout", "50ms",
                                                     "--kv-redis-ttl", "2h", "--kv-redis-prefix", "a:"}));
  ASSERT_TRUE(options.shared_cache.redis.has_value());
  EXPECT_EQ(options.shared_cache.redis->name(), "cache:7000/1");
  EXPECT_EQ(options.shared_cache.timeout, std::chrono::milliseconds(50));
  EXPECT_EQ(options.shared_cache.ttl, std::chrono::hours(2));
  EXPECT_EQ(options.shared_cache.key_prefix, "a:");
  EXPECT_THAT(mistake({"serve", "--kv-redis", "redis://cache", "--prefix-cache", "off"}), HasSubstr("--kv-redis"));
  const std::string wrong = mistake({"serve", "--kv-redis", "redis://:secret@cache:port"});
  EXPECT_THAT(wrong, HasSubstr("--kv-redis"));
  EXPECT_EQ(wrong.find("secret"), std::string::npos);
}

TEST(CommandLine, DraftsAreForAllModelsOrOneEach) {
  const auto all = std::get<ServeOptions>(parse({"serve", "a.gguf", "b.gguf", "--draft", "b.gguf"}));
  EXPECT_EQ(models_of(all)[0].model.draft, "b.gguf");
  EXPECT_EQ(models_of(all)[1].model.draft, "") << "it does not guess for itself";
  EXPECT_EQ(draft_for_later(all, "c.gguf"), "b.gguf");
  EXPECT_EQ(draft_for_later(all, "b.gguf"), "");
  const auto each = std::get<ServeOptions>(parse({"serve", "a.gguf", "b.gguf", "--draft", "none", "--draft", "s.gguf"}));
  EXPECT_EQ(models_of(each)[0].model.draft, "");
  EXPECT_EQ(models_of(each)[1].model.draft, "s.gguf");
  EXPECT_EQ(draft_for_later(each, "c.gguf"), "");
  EXPECT_THAT(mistake({"serve", "a.gguf", "b.gguf", "c.gguf", "--draft", "x", "--draft", "y"}),
              HasSubstr("--draft is given 2 times for 3 models"));
  EXPECT_THAT(mistake({"serve", "--draft", "x", "--speculate", "off"}), HasSubstr("--draft contradicts --speculate off"));
  EXPECT_THAT(mistake({"serve", "--speculate-always", "--speculate", "off"}), HasSubstr("--speculate-always contradicts"));
}

TEST(CommandLine, EachModelHasItsPartOfTheDisk) {
  const auto part = [](const ServeOptions& options, const char* id) {
    const DiskOptions disk = disk_options_of(options, id);
    return std::pair(disk.directory, disk.limit);
  };
  const auto one = std::get<ServeOptions>(parse({"serve", "a.gguf", "--kv-disk", "/d", "--kv-disk-limit", "16GB"}));
  EXPECT_EQ(part(one, "a"), std::pair(std::string("/d"), std::uint64_t{12'000'000'000}));
  EXPECT_EQ(part(one, "hub/b:latest"), std::pair(std::string("/d/hub_b:latest"), std::uint64_t{1'000'000'000})) << "of the registry";
  const auto two = std::get<ServeOptions>(parse({"serve", "a.gguf", "b.gguf", "--kv-disk", "/d", "--kv-disk-limit", "16GB"}));
  EXPECT_EQ(part(two, "b"), std::pair(std::string("/d/b"), std::uint64_t{6'000'000'000}));
  EXPECT_EQ(part(two, "c"), std::pair(std::string("/d/c"), std::uint64_t{1'000'000'000}));
  const test::Folder models;
  const std::string models_dir = models.path();
  const auto folder =
      std::get<ServeOptions>(parse({"serve", "--models-dir", models_dir.c_str(), "--kv-disk", "/d", "--kv-disk-limit", "16GB"}));
  EXPECT_EQ(part(folder, "a"), std::pair(std::string("/d/a"), std::uint64_t{4'000'000'000}));
  EXPECT_EQ(part(std::get<ServeOptions>(parse({"serve", "a.gguf"})), "a").first, "");
}

TEST(CommandLine, CheckpointsHaveAnIntervalAndMemory) {
  const auto of = [](const char* text) { return std::get<ServeOptions>(parse({"serve", "--state-checkpoints", text})).batch; };
  EXPECT_EQ(of("256").state_checkpoints, 256);
  EXPECT_FALSE(of("256").state_memory);
  EXPECT_EQ(of("2GiB").state_checkpoints, 512) << "the default stays";
  EXPECT_EQ(of("2GiB").state_memory, std::uint64_t{2} << 30U);
  EXPECT_EQ(of("1.5M").state_memory, 3U << 19U);
  EXPECT_EQ(of("0,64MiB").state_checkpoints, 0);
  EXPECT_EQ(of("0,64MiB").state_memory, 64U << 20U);
  for (const char* wrong : {"-1", "1048577", "64,", "64,x", "GiB", "2GiB,64", ",2GiB", "1 2"})
    EXPECT_THAT(mistake({"serve", "--state-checkpoints", wrong}), HasSubstr("--state-checkpoints")) << wrong;
}

TEST(CommandLine, ServeTakesWhoMayAskAndWhatIsWrittenDown) {
  const auto options = std::get<ServeOptions>(parse(
      {"serve", "--cors-origin", "https://a.example", "m.gguf", "--cors-origin", "*", "--api-key-file", "keys", "--requests-per-minute",
       "5", "--tokens-per-minute", "4294967295", "--concurrent-requests", "0", "--open-metrics", "--log-format", "json", "--access-log"}));
  EXPECT_EQ(options.files, std::vector<std::string>{"m.gguf"});
  EXPECT_EQ(options.http.cors_origins, (std::vector<std::string>{"https://a.example", "*"}));
  EXPECT_EQ(options.access.api_key_file, "keys");
  EXPECT_EQ(options.access.limits.requests_per_minute, 5U);
  EXPECT_EQ(options.access.limits.tokens_per_minute, 4294967295U);
  EXPECT_TRUE(options.http.open_metrics);
  EXPECT_EQ(options.log.format, net::LogFormat::kJson);
  EXPECT_TRUE(options.log.access);
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--cors-origin", "localhost"})).http.cors_origins.front(), "localhost");
  const auto fetching = std::get<ServeOptions>(
      parse({"serve", "--image-host", "a.example", "--image-host", "*.b.example:8443", "--image-host", "*:*", "--image-private-hosts"}));
  EXPECT_EQ(fetching.image_fetch.hosts, (std::vector<std::string>{"a.example", "*.b.example:8443", "*:*"}));
  EXPECT_TRUE(fetching.image_fetch.private_addresses);
  for (const char* host : {"https://a.example", "a.example/x", "a*.example", "*.", ":80", "a:b", "a,b"})
    EXPECT_THAT(mistake({"serve", "--image-host", host}), HasSubstr("is no host")) << host;
  for (const char* origin :
       {"example.org", "https://", "https://a.example/", "https://a.example, https://b.example", "null", "https://*.example"})
    EXPECT_THAT(mistake({"serve", "--cors-origin", origin}), HasSubstr("is no origin")) << origin;
  EXPECT_THAT(mistake({"serve", "--requests-per-minute", "-1"}), HasSubstr("--requests-per-minute: '-1' is not a whole number from 0 to"));
  EXPECT_THAT(mistake({"serve", "--log-format", "xml"}), HasSubstr("--log-format"));
  EXPECT_THAT(mistake({"serve", "--access-log", "--log-level", "error"}), HasSubstr("--access-log writes at level info"));
}

TEST(CommandLine, DefaultsOfRequests) {
  EXPECT_FALSE(std::get<ServeOptions>(parse({"serve"})).defaults.temperature);
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--top-p", "0"})).defaults.top_p, 0.0F);
  const auto options = std::get<ServeOptions>(parse({"serve",
                                                     "--temperature",
                                                     "0.5",
                                                     "--top-p",
                                                     "0.9",
                                                     "--top-k",
                                                     "40",
                                                     "--min-p",
                                                     "0.05",
                                                     "--repeat-penalty",
                                                     "1.1",
                                                     "--seed",
                                                     "7",
                                                     "--max-tokens",
                                                     "256",
                                                     "--reasoning",
                                                     "off",
                                                     "--chat-template-kwargs",
                                                     R"({"enable_thinking": true})",
                                                     "--strict-parameters",
                                                     "--any-model-name"}));
  const RequestDefaults& defaults = options.defaults;
  EXPECT_EQ(defaults.temperature, 0.5F);
  EXPECT_EQ(defaults.top_p, 0.9F);
  EXPECT_EQ(defaults.top_k, 40);
  EXPECT_EQ(defaults.min_p, 0.05F);
  EXPECT_EQ(defaults.repetition_penalty, 1.1F);
  EXPECT_EQ(defaults.seed, 7U);
  EXPECT_EQ(defaults.max_tokens, 256);
  EXPECT_EQ(defaults.reasoning, false);
  EXPECT_EQ(*defaults.template_kwargs.find("enable_thinking"), Value(true));
  EXPECT_TRUE(defaults.strict_parameters);
  EXPECT_TRUE(options.any_model_name);
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--reasoning", "on"})).defaults.reasoning, true);
  EXPECT_FALSE(std::get<ServeOptions>(parse({"serve", "--reasoning", "auto"})).defaults.reasoning);
  EXPECT_THAT(mistake({"serve", "--temperature", "3"}), HasSubstr("--temperature"));
  EXPECT_THAT(mistake({"serve", "--reasoning", "perhaps"}), HasSubstr("--reasoning"));
  EXPECT_THAT(mistake({"serve", "--chat-template-kwargs", "[1]"}), HasSubstr("'[1]' is no JSON object"));
}

TEST(CommandLine, CacheExportsAndImports) {
  const auto to =
      std::get<CacheExportOptions>(parse({"cache", "export", "m.gguf", "out.safetensors", "--prompt", "Hello", "--kv-dtype", "f32"}));
  EXPECT_EQ(to.model.model, "m.gguf");
  EXPECT_EQ(to.output, "out.safetensors");
  EXPECT_EQ(to.prompt, "Hello");
  const auto from =
      std::get<CacheImportOptions>(parse({"cache", "import", "m.gguf", "out.safetensors", "--kv-disk", "d", "--cache-salt", "s"}));
  EXPECT_EQ(from.input, "out.safetensors");
  EXPECT_EQ(from.disk.directory, "d");
  EXPECT_EQ(from.cache_salt, "s");
  EXPECT_THAT(mistake({"cache", "export", "m.gguf", "o"}), HasSubstr("--prompt"));
  EXPECT_THAT(mistake({"cache", "import", "m.gguf", "o"}), HasSubstr("--kv-disk"));
}

TEST(CommandLine, MistakesNameOptionAndValue) {
  EXPECT_THAT(mistake({"serve", "--port", "65536"}), HasSubstr("--port: '65536' is not a whole number from 0 to 65535"));
  EXPECT_THAT(mistake({"serve", "--port", "-1"}), HasSubstr("'-1'"));
  EXPECT_THAT(mistake({"serve", "--max-batch", "12.5"}), HasSubstr("--max-batch: '12.5'"));
  EXPECT_THAT(mistake({"serve", "--max-batch", "99999999999999999999"}), HasSubstr("--max-batch"));
  EXPECT_THAT(mistake({"serve", "--kv-memory", "4XB"}), HasSubstr("--kv-memory: '4XB' is not a size"));
  EXPECT_THAT(mistake({"serve", "--drain-timeout", "x"}), HasSubstr("--drain-timeout: 'x' is not a duration"));
  EXPECT_THAT(mistake({"serve", "--access-log", "--trusted-proxy", "10.0.0.0/40"}), HasSubstr("'10.0.0.0/40' is no network"));
  EXPECT_THAT(mistake({"serve", "--trusted-proxy", "unix"}), HasSubstr("--access-log, which is not given"));
  EXPECT_THAT(mistake({"serve", "--block-size", "24"}), HasSubstr("--block-size"));
  EXPECT_THAT(mistake({"serve", "--isa", "sse"}), HasSubstr("--isa: 'sse'"));
  EXPECT_THAT(mistake({"serve", "--dtype", "q8"}), HasSubstr("--dtype: 'q8' is not an arithmetic"));
  EXPECT_THAT(mistake({"serve", "--no-model", "m.gguf"}), HasSubstr("--no-model"));
  EXPECT_THAT(mistake({"serve", "--nonsense"}), HasSubstr("--nonsense"));
  EXPECT_THAT(mistake({"run", "--top-p", "2"}), HasSubstr("--top-p: '2' is not a number from"));
  EXPECT_THAT(mistake({"run", "--temperature", "nan"}), HasSubstr("--temperature"));
  EXPECT_THAT(mistake({"explain"}), HasSubstr("explain"));
}

TEST(CommandLine, RunTellsModelFromPrompt) {
  const auto prompt = std::get<RunOptions>(parse({"run", "Hello there"}));
  EXPECT_EQ(prompt.model.model, "");
  EXPECT_EQ(prompt.prompt, "Hello there");
  const auto model = std::get<RunOptions>(parse({"run", "missing.gguf"}));
  EXPECT_EQ(model.model.model, "missing.gguf");
  EXPECT_EQ(model.prompt, "");
  const auto both = std::get<RunOptions>(parse({"run", "m", "Hello"}));
  EXPECT_EQ(both.model.model, "m");
  EXPECT_EQ(both.prompt, "Hello");
}

TEST(CommandLine, ServeTakesNoEmptyValueAndNoOptionForOne) {
  for (const char* option : {"--config", "--alias", "--api-key-file", "--kv-disk", "--takeover", "--unix-socket", "--tls-cert", "--host"}) {
    EXPECT_THAT(mistake({"serve", option, ""}), HasSubstr(std::string(option) + ": the value is empty"));
    EXPECT_THAT(mistake({"serve", option, "--access-log"}), HasSubstr(std::string(option) + ": the value is missing: '--access-log'"));
    EXPECT_THAT(mistake({"serve", (std::string(option) + "=").c_str(), "--access-log"}), HasSubstr("is missing: '--access-log'"));
  }
  EXPECT_THAT(mistake({"serve", ""}), HasSubstr("model: the value is empty"));
}

TEST(CommandLine, BenchTakesItsOptions) {
  const auto options = std::get<bench::BenchOptions>(parse({"bench", "serve", "--endpoint", "chat", "--num-prompts", "7", "--request-rate",
                                                            "inf", "--goodput", "ttft:200", "--goodput", "tpot:50", "--json", "x.json"}));
  EXPECT_EQ(options.endpoint, bench::Endpoint::kChat);
  EXPECT_EQ(options.num_prompts, 7);
  EXPECT_EQ(options.goodput->ttft_ms, 200.0);
  EXPECT_EQ(options.goodput->tpot_ms, 50.0);
  EXPECT_THAT(mistake({"bench", "serve", "--goodput", "speed:1"}), HasSubstr("--goodput: 'speed:1' is no bound"));
  EXPECT_THAT(mistake({"bench", "serve", "--endpoint", "images"}), HasSubstr("--endpoint"));
  EXPECT_THAT(mistake({"bench"}), HasSubstr("subcommand"));
}

TEST(CommandLine, PoolingsAreNamed) {
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "a", "b", "--pooling", "cls", "--pooling", "none"})).poolings,
            (std::vector{Pooling::kFirst, Pooling::kEach}));
  EXPECT_THAT(mistake({"serve", "--pooling", "first"}), HasSubstr("--pooling: 'first' is no pooling: write last, mean, cls or none"));
}

TEST(CommandLine, HelpSaysWhereThereMayBeSeveral) {
  EXPECT_THAT(std::get<Farewell>(parse({"rm", "--help"})).text, HasSubstr("rm [OPTIONS] name...\n"));
}

TEST(CommandLine, HelpAndVersionLeaveWithZero) {
  for (const auto& arguments :
       {std::initializer_list<const char*>{"--help"}, {"serve", "--help"}, {"bench", "serve", "--help"}, {"--version"}}) {
    const Command command = parse(arguments);
    EXPECT_EQ(std::get<Farewell>(command).exit_code, 0);
  }
}

TEST(CommandLine, EnvironmentChoosesTheTier) {
  setenv("BRAID_ISA", "scalar", 1);
  const auto options = std::get<ServeOptions>(parse({"serve"}));
  unsetenv("BRAID_ISA");
  EXPECT_EQ(options.model.isa, kernels::Isa::kScalar);
}

TEST(CommandLine, ConvertTakesATypeAndServeRoundsWhileLoading) {
  const auto convert = std::get<ConvertCommandOptions>(parse({"convert", "folder", "out.gguf", "--type", "q8_0"}));
  EXPECT_EQ(convert.input, "folder");
  EXPECT_EQ(convert.output, "out.gguf");
  EXPECT_EQ(convert.type, kernels::WeightType::kQ8_0);
  EXPECT_EQ(std::get<Farewell>(parse({"convert", "folder", "out.gguf", "--type", "q2"})).exit_code, 2);
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "folder", "--quantize", "q4_k"})).model.float_type, kernels::WeightType::kQ4_K);
  EXPECT_EQ(std::get<Farewell>(parse({"serve", "folder", "--quantize", "q8_0", "--dtype", "f32"})).exit_code, 2);
}

TEST(CommandLine, QuantizeSplitAndMerge) {
  const auto quantize = std::get<QuantizeCommandOptions>(parse({"quantize", "a.gguf", "b.gguf", "--type", "Q4_K", "--imatrix", "m"}));
  EXPECT_EQ(quantize.input, "a.gguf");
  EXPECT_EQ(quantize.output, "b.gguf");
  EXPECT_EQ(quantize.type, "q4_k_m");
  EXPECT_EQ(quantize.importance, "m");
  EXPECT_FALSE(quantize.pure || quantize.allow_requantize || quantize.force);
  EXPECT_EQ(std::get<Farewell>(parse({"quantize", "a.gguf", "b.gguf", "--type", "q9"})).exit_code, 2);
  const auto split = std::get<SplitCommandOptions>(parse({"split", "a.gguf", "b", "--max-size", "2G"}));
  EXPECT_EQ(split.most_bytes, std::uint64_t{2} << 30U);
  EXPECT_FALSE(split.most_tensors);
  EXPECT_EQ(std::get<Farewell>(parse({"split", "a.gguf", "b"})).exit_code, 2);  // a bound is needed
  const auto merge = std::get<MergeCommandOptions>(parse({"merge", "a-00001-of-00002.gguf", "b.gguf", "--force"}));
  EXPECT_EQ(merge.output, "b.gguf");
  EXPECT_TRUE(merge.force);
}

}  // namespace
}  // namespace braid::app
