// /metrics against docs/metrics.md, its JSON form, and the figures of the system.
#include "braid/adapters.h"
#include "braid/weights.h"
#include "net/json/parse.h"
#include "net/metrics/exposition.h"
#include "net/metrics/revisions.h"
#include "net/test_server.h"
#include "support/folder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

namespace braid::test {
namespace {

namespace fs = std::filesystem;

using Types = std::map<std::string, std::string>;  // by name

// The rows of the document's tables: | `name` | type | …
Types documented() {
  std::ifstream in(BRAID_SOURCE_DIR "/docs/metrics.md");
  Types types;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| `") || line.find("` | ") == std::string::npos) continue;
    const std::size_t end = line.find('`', 3);
    std::istringstream rest(line.substr(end + 3));
    std::string type;
    rest >> type;
    if (type == "counter" || type == "gauge" || type == "histogram") types[line.substr(3, end - 3)] = type;
  }
  return types;
}

Types served(const std::string& text) {
  std::istringstream in(text);
  Types types;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string hash, kind, name, type;
    words >> hash >> kind >> name >> type;
    if (hash == "#" && kind == "TYPE") types[name] = type;
  }
  return types;
}

// Weights and an adapter of a model.
struct Revised final : LiveWeights, Adapters {
  const WeightFacts& facts() const override { return weights; }
  void name_version(std::string) override {}
  boost::asio::awaitable<Result<WeightFacts>> update(WeightSource, UpdateMode) override { co_return weights; }
  boost::asio::awaitable<Result<std::vector<TensorDigest>>> digests() override { co_return std::vector<TensorDigest>(); }

  std::vector<AdapterFacts> list() const override { return {{.name = "tuned", .revision = "a1", .path = {}, .requests = 7}}; }
  bool has(std::string_view name) const override { return name == "tuned"; }
  bool had_any() const override { return true; }
  Result<std::shared_ptr<const ServedModel>> apply(std::shared_ptr<const ServedModel> base, std::span<const AdapterChoice>) override {
    return base;
  }
  Result<AdapterUse> current(const AdapterUse& applied) override { return applied; }
  boost::asio::awaitable<Result<AdapterFacts>> load(std::string, WeightSource, std::optional<UpdateMode>) override {
    co_return AdapterFacts();
  }
  Result<void> unload(std::string_view) override { return {}; }

  WeightFacts weights{.revision = "w2", .version = {}, .created = 1, .updates = 3};
};

TEST(Metrics, TellTheRevisionsOfWeightsAndAdapters) {
  Revised revised;
  ServedModel model;
  model.id = "base";
  model.adapters = &revised;
  model.weights = &revised;
  ServedNetwork network{.id = "policy", .created = 1, .parameters = 0, .revision = "w2", .predictor = nullptr, .weights = &revised};
  net::FamilyList families;
  net::add_revisions(families, ModelDirectory({&model}, false, {&network}));
  const std::string text = families.text();
  for (const char* line :
       {R"(braid_weights_info{model="base",revision="w2"} 1)", R"(braid_weights_info{model="policy",revision="w2"} 1)",
        R"(braid_weight_updates_total{model="base"} 3)", R"(braid_adapter_info{model="base",adapter="tuned",revision="a1"} 1)",
        R"(braid_adapter_requests_total{model="base",adapter="tuned",revision="a1"} 7)"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(Metrics, TellWhatEachRankTook) {
  net::FamilyList families;
  net::add_ranks(families, std::vector<RankSeconds>{{.compute = 1.5, .exchange = 0.25}, {.compute = 1.25, .exchange = 0.5}});
  const std::string text = families.text();
  for (const char* line : {R"(braid_rank_compute_seconds_total{rank="0"} 1.5)", R"(braid_rank_compute_seconds_total{rank="1"} 1.25)",
                           R"(braid_rank_exchange_seconds_total{rank="1"} 0.5)"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(ServedModels, AnAdaptersNameIsItsBasesWhereModelsAreAskedAbout) {
  Revised revised;
  ServedModel model;
  model.id = "base";
  model.adapters = &revised;
  const ServiceStatus status{.state = ServiceState::kReady, .reason = {}, .models = ModelDirectory({&model})};
  for (const char* name : {"base", "tuned", "base:tuned"}) EXPECT_EQ(net::served_model(status, name).value(), &model) << name;
  EXPECT_EQ(net::served_model(status, "other").error().code, ErrorCode::kNotFound);
}

TEST(Metrics, EachIsDocumentedWithItsTypeAndEachDocumentedOneIsServed) {
  EngineStats stats;
  stats.disk.emplace();
  stats.redis.emplace();
  stats.images.emplace();
  net::SystemFigures figures;
  figures.pressure = {{.resource = "cpu"}};
  figures.group_memory_bytes = figures.group_memory_limit_bytes = figures.group_cpu_limit = 1.0;
  figures.group_cpu_seconds = figures.group_throttled_seconds = 1.0;
  net::FamilyList families;
  boost::asio::io_context loop;
  net::add_http(families, net::Counters(), net::http::ConnectionSet(loop, std::chrono::seconds(1)));
  net::add_engine(families, stats);
  net::add_ranks(families, std::vector<RankSeconds>(2));
  net::add_predictor(families, PredictorStats());
  net::add_system(families, figures);
  Revised revised;
  ServedModel model;
  model.adapters = &revised;
  model.weights = &revised;
  net::add_revisions(families, ModelDirectory({&model}));
  EXPECT_EQ(served(families.text()), documented());
}

TEST(Metrics, AServerServesNoOther) {
  TestServer server;
  const Types all = documented();
  for (const auto& [name, type] : served(server.ask(get("/metrics")).body)) EXPECT_TRUE(all.contains(name)) << name;
}

TEST(Metrics, NamesHaveOnePrefixButForPrometheusOwn) {
  for (const auto& [name, type] : documented()) EXPECT_TRUE(name.starts_with("braid_") || name.starts_with("process_")) << name;
}

TEST(Metrics, TheJsonFormHasTheSameNamesTypesAndValues) {
  TestServer server;
  server.ask(post("/v1/completions", R"({"prompt":"a"})"));
  const Types text = served(server.ask(get("/metrics")).body);
  std::string body = server.ask(get("/v1/metrics")).body;
  const Value document = net::json::parse(body).value();
  Types types;
  for (const auto& [name, family] : *document.find("metrics")->get_if<ValueDict>())
    types[name] = *family.find("type")->get_if<std::string>();
  EXPECT_EQ(types, text);

  const Value& tokens = document.find("metrics")->find("braid_inter_token_latency_ms")->find("values")->get_if<ValueList>()->front();
  EXPECT_EQ(*tokens.find("count"), Value(std::int64_t{1}));  // "Hi" is two tokens
  const ValueList& buckets = *tokens.find("buckets")->get_if<ValueList>();
  EXPECT_EQ(*buckets.back().find("count"), Value(std::int64_t{1}));
  EXPECT_EQ(*buckets.back().find("le"), Value());
}

TEST(Metrics, AreNotServedWhenTheyAreOff) {
  net::ServerOptions options = test_options();
  options.metrics = false;
  TestServer server(options);
  EXPECT_EQ(server.ask(get("/metrics")).status, 404);
  const Reply reply = server.ask(get("/v1/metrics"));
  EXPECT_EQ(reply.status, 404);
  EXPECT_NE(reply.body.find("--metrics off"), std::string::npos);
}

TEST(Metrics, RefusalsAreCountedByReason) {
  TestServer server;
  server.ask("GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n");
  server.ask(get("/nowhere"));
  server.ask(post("/v1/completions", R"({"prompt":3})"));
  server.ask(post("/tokenize", "{}"));
  server.ask(post("/v1/abort", R"({"id":"none"})"));
  server.ask(get("/v1/models/none"));
  server.ask(post("/v1/completions", std::string(200'000, 'a')));
  server.on_loop([&] { server.engine().refusal = Error{ErrorCode::kOverloaded, "full", ""}; });
  server.ask(post("/v1/completions", R"({"prompt":"a"})"));
  const std::string text = server.ask(get("/metrics")).body;
  EXPECT_NE(text.find("braid_requests_refused_total{reason=\"malformed\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("braid_requests_refused_total{reason=\"invalid\"} 5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("braid_requests_refused_total{reason=\"too_large\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("braid_requests_refused_total{reason=\"queue_full\"} 1\n"), std::string::npos) << text;
}

TEST(Metrics, WhatIsRefusedForItsTimeIsCounted) {
  net::ServerOptions options = test_options();
  options.header_timeout = std::chrono::milliseconds(30);
  options.request_timeout = std::chrono::milliseconds(30);
  TestServer server(options);
  server.on_loop([&] { server.engine().script = nullptr; });
  EXPECT_EQ(server.ask("GET /health HT").status, 408);
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":"a"})")).status, 504);
  EXPECT_EQ(server.ask(post("/v1/completions", R"({"prompt":"a","stream":true})")).status, 200) << "its headers have been sent";
  const std::string text = server.ask(get("/metrics")).body;
  EXPECT_NE(text.find("braid_requests_refused_total{reason=\"timeout\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("braid_timeouts_total{kind=\"header\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("braid_timeouts_total{kind=\"total\"} 2\n"), std::string::npos) << text;
}

TEST(Metrics, WhatReachesNoRouteIsCountedByTheClassOfItsStatus) {
  TestServer server;
  server.ask("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: a\r\n\r\n");
  server.ask(get("/nowhere"));
  server.ask("GET\r\n\r\n");
  server.ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n");
  const std::string text = server.ask(get("/metrics")).body;
  EXPECT_NE(text.find("braid_requests_total{route=\"none\",status=\"2xx\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("braid_requests_total{route=\"none\",status=\"4xx\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("braid_requests_total{route=\"none\",status=\"5xx\"} 1\n"), std::string::npos) << text;
}

TEST(Metrics, EndpointsOfOnePathAreOneSample) {
  TestServer server;
  server.ask(get("/v1/responses/none"));
  server.ask("DELETE /v1/responses/none HTTP/1.1\r\nHost: a\r\n\r\n");
  const std::string text = server.ask(get("/metrics")).body;
  EXPECT_NE(text.find("braid_requests_total{route=\"/responses/\",status=\"404\"} 2\n"), std::string::npos) << text;
}

TEST(Histogram, ABoundBelongsToItsBucket) {
  const std::array<double, 2> bounds = {1.0, 2.0};
  net::Histogram histogram(bounds);
  for (const double value : {0.5, 1.0, 1.5, 2.0, 3.0}) histogram.observe(value);
  EXPECT_EQ(std::vector(histogram.counts().begin(), histogram.counts().end()), (std::vector<std::uint64_t>{2, 2, 1}));
  EXPECT_EQ(histogram.sum(), 8.0);
}

// A made-up root folder.
class SystemFiguresTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  net::SystemFigures read() const { return net::read_system_figures(root_.c_str()); }

  Folder folder_;
  fs::path root_ = folder_.path();
};

TEST_F(SystemFiguresTest, ReadsPressure) {
  write("proc/pressure/io", "some avg10=12.50 avg60=0.00 avg300=0.00 total=2000000\nfull avg10=1.00 avg60=0.00 avg300=0.00 total=500000\n");
  const net::SystemFigures figures = read();
  ASSERT_EQ(figures.pressure.size(), 1U);
  EXPECT_EQ(figures.pressure[0].resource, "io");
  EXPECT_DOUBLE_EQ(figures.pressure[0].some_share, 0.125);
  EXPECT_DOUBLE_EQ(figures.pressure[0].some_seconds, 2.0);
  EXPECT_DOUBLE_EQ(figures.pressure[0].full_share, 0.01);
  EXPECT_DOUBLE_EQ(figures.pressure[0].full_seconds, 0.5);
}

TEST_F(SystemFiguresTest, ReadsAVersion2GroupWithTheTightestLimitAboveIt) {
  write("proc/self/cgroup", "0::/slice/service\n");
  write("sys/fs/cgroup/slice/memory.max", "1000\n");
  write("sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/slice/service/memory.max", "max\n");
  write("sys/fs/cgroup/slice/service/memory.current", "700\n");
  write("sys/fs/cgroup/slice/service/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/slice/service/cpu.stat", "usage_usec 3000000\nuser_usec 1\nthrottled_usec 250000\n");
  const net::SystemFigures figures = read();
  EXPECT_EQ(figures.group_memory_bytes, 700.0);
  EXPECT_EQ(figures.group_memory_limit_bytes, 1000.0);
  EXPECT_EQ(figures.group_cpu_limit, 1.5);
  EXPECT_EQ(figures.group_cpu_seconds, 3.0);
  EXPECT_EQ(figures.group_throttled_seconds, 0.25);
}

TEST_F(SystemFiguresTest, ReadsVersion1Groups) {
  write("proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/box\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4096\n");
  write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "2048\n");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpu.stat", "nr_periods 1\nthrottled_time 2000000000\n");
  write("sys/fs/cgroup/cpu,cpuacct/box/cpuacct.usage", "5000000000\n");
  const net::SystemFigures figures = read();
  EXPECT_EQ(figures.group_memory_bytes, 2048.0);
  EXPECT_EQ(figures.group_memory_limit_bytes, 4096.0);
  EXPECT_EQ(figures.group_cpu_limit, 0.5);
  EXPECT_EQ(figures.group_cpu_seconds, 5.0);
  EXPECT_EQ(figures.group_throttled_seconds, 2.0);
}

TEST_F(SystemFiguresTest, WithoutGroupsAndPressureThereAreNone) {
  const net::SystemFigures figures = read();
  EXPECT_TRUE(figures.pressure.empty());
  EXPECT_FALSE(figures.group_memory_bytes || figures.group_memory_limit_bytes || figures.group_cpu_limit);
}

TEST(System, TheRealFiguresAreThere) {
  const net::SystemFigures figures = net::read_system_figures();
  EXPECT_GT(figures.resident_bytes, 1e6);
  EXPECT_GE(figures.open_files, 3.0);
  EXPECT_GT(figures.max_files, figures.open_files);
}

TEST(Metrics, HaveOtherServersNamesWhereTheyAreWanted) {
  net::ServerOptions options = test_options();
  EXPECT_EQ(TestServer(options).ask(get("/metrics")).body.find("vllm:"), std::string::npos);
  options.vllm_metrics = true;
  options.llamacpp_metrics = true;
  TestServer server(options);
  server.ask(post("/v1/completions", R"({"prompt":"a"})"));
  server.on_loop([&] { server.engine().script = [](const GenerationRequest&) { return events_of("H", FinishReason::kLength); }; });
  server.ask(post("/v1/completions", R"({"prompt":"a","max_tokens":1,"stream":true})"));
  for (const char* probe : {"/health", "/metrics", "/v1/models"}) server.ask(get(probe));
  server.ask(post("/v1/completions", R"({"prompt":1.5})"));
  const std::string text = server.ask(get("/metrics")).body;
  const Types types = served(text);
  // What the boards that vLLM publishes look at, of its versions from 0.6 on, and all that llama-server has.
  for (const char* name :
       {"num_requests_running", "num_requests_waiting", "num_requests_swapped", "kv_cache_usage_perc", "gpu_cache_usage_perc"})
    EXPECT_EQ(types.at(std::string("vllm:") + name), "gauge") << name;
  for (const char* name : {"prompt_tokens_total", "generation_tokens_total", "request_success_total", "num_preemptions_total",
                           "prefix_cache_queries_total", "prefix_cache_hits_total", "gpu_prefix_cache_hits_total"})
    EXPECT_EQ(types.at(std::string("vllm:") + name), "counter") << name;
  for (const char* name :
       {"e2e_request_latency_seconds", "time_to_first_token_seconds", "time_per_output_token_seconds", "inter_token_latency_seconds",
        "request_time_per_output_token_seconds", "request_prompt_tokens", "request_generation_tokens", "request_queue_time_seconds",
        "request_prefill_time_seconds", "request_decode_time_seconds", "request_inference_time_seconds",
        "request_max_num_generation_tokens", "request_params_max_tokens", "request_params_n", "iteration_tokens_total"}) {
    EXPECT_EQ(types.at(std::string("vllm:") + name), "histogram") << name;
    EXPECT_NE(text.find(std::string("vllm:") + name + "_sum{model_name=\"fake-model\"} "), std::string::npos) << name;
  }
  for (const auto& [name, type] : Types{{"prompt_tokens_total", "counter"},
                                        {"prompt_seconds_total", "counter"},
                                        {"tokens_predicted_total", "counter"},
                                        {"tokens_predicted_seconds_total", "counter"},
                                        {"n_decode_total", "counter"},
                                        {"n_tokens_max", "counter"},
                                        {"n_busy_slots_per_decode", "gauge"},
                                        {"prompt_tokens_seconds", "gauge"},
                                        {"predicted_tokens_seconds", "gauge"},
                                        {"kv_cache_usage_ratio", "gauge"},
                                        {"requests_processing", "gauge"},
                                        {"requests_deferred", "gauge"}})
    EXPECT_EQ(types.at("llamacpp:" + name), type) << name;
  for (const std::string_view line : {"vllm:time_to_first_token_seconds_count{model_name=\"fake-model\"} 2\n", "braid_active_requests ",
                                      "vllm:e2e_request_latency_seconds_count{model_name=\"fake-model\"} 2\n",
                                      "vllm:cache_config_info{model_name=\"fake-model\",block_size=\"",
                                      "vllm:request_success_total{model_name=\"fake-model\",finished_reason=\"length\"} 1\n",
                                      "vllm:request_success_total{model_name=\"fake-model\",finished_reason=\"stop\"} 1\n",
                                      "vllm:request_generation_tokens_sum{model_name=\"fake-model\"} 3\n",
                                      "vllm:request_params_max_tokens_sum{model_name=\"fake-model\"} 17\n",
                                      "vllm:request_params_n_bucket{model_name=\"fake-model\",le=\"1\"} 2\n", "llamacpp:n_tokens_max 4\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace braid::test
