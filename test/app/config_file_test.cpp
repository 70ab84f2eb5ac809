// Options of `braid serve` from a file and from the environment.
#include "app/cli/commands.h"
#include "app/parsed_command.h"
#include "app/serving/reconfiguration.h"
#include "support/folder.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <string>
#include <utility>
#include <vector>

namespace braid::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ConfigFile : public testing::Test {
 protected:
  const char* write(const char* text) {
    std::ofstream(path_) << text;
    return path_.c_str();
  }

 private:
  test::Folder folder_;
  std::string path_ = folder_ / "config.yaml";
};

TEST_F(ConfigFile, SetsWhatTheCommandLineLeavesAlone) {
  const char* path = write("port: 9000\nmax-batch: 4   # few\nkv-memory: 1GiB\nno-warmup: true\nmodel: m.gguf\nalias: a\n");
  const auto options = std::get<ServeOptions>(parse({"serve", "--config", path, "--port", "9001"}));
  EXPECT_EQ(options.http.listen.front().port, 9001);
  EXPECT_EQ(options.batch.max_batch, 4);
  EXPECT_EQ(options.model.kv_memory, 1ULL << 30U);
  EXPECT_EQ(options.files, std::vector<std::string>{"m.gguf"});
  EXPECT_TRUE(options.no_warmup);
}

TEST_F(ConfigFile, ListsAreForOptionsThatTakeSeveral) {
  const auto options = std::get<ServeOptions>(parse({"serve", "--config", write("listen: ['127.0.0.1:1', '[::1]:2']\n")}));
  ASSERT_EQ(options.http.listen.size(), 2U);
  EXPECT_EQ(options.http.listen[1].host, "::1");
}

TEST_F(ConfigFile, FlagsMayBeFalse) {
  EXPECT_FALSE(std::get<ServeOptions>(parse({"serve", "--config", write("no-warmup: false\n")})).no_warmup);
}

TEST_F(ConfigFile, AListGivesAnOptionSeveralTimes) {
  const auto options = std::get<ServeOptions>(parse({"serve", "--config", write("cors-origin: [https://a.example, https://b.example]\n")}));
  EXPECT_EQ(options.http.cors_origins, (std::vector<std::string>{"https://a.example", "https://b.example"}));
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--config", write("cors-origin: https://a.example\n")})).http.cors_origins.size(), 1U);
}

TEST_F(ConfigFile, MistakesNameTheLine) {
  EXPECT_THAT(mistake({"serve", "--config", write("port: 1\nmax-wating: 7\n")}),
              HasSubstr(".yaml:2: there is no option 'max-wating': is 'max-waiting' meant?"));
  EXPECT_THAT(mistake({"serve", "--config", write("\n\nport: many\n")}), HasSubstr(".yaml:3: --port: 'many'"));
  EXPECT_THAT(mistake({"serve", "--config", write("port: [1, 2]\n")}), HasSubstr(".yaml:1: 'port' wants one plain value"));
  EXPECT_THAT(mistake({"serve", "--config", write("no-model: perhaps\n")}), HasSubstr(".yaml:1: 'no-model' wants true or false"));
  EXPECT_THAT(mistake({"serve", "--config", write("port: 1\nhost: ::1\nport: 2\n")}),
              HasSubstr(".yaml:3: 'port' stands here for the second time"));
  EXPECT_THAT(mistake({"serve", "--config", write("---\nport: 1\n---\nport: many\n")}), HasSubstr("one document"));
  EXPECT_THAT(mistake({"serve", "--config", write("api-key-file: ''\n")}), HasSubstr("--api-key-file: the value is empty"));
  EXPECT_THAT(mistake({"serve", "--config", testing::TempDir().c_str()}), HasSubstr("--config: cannot read"));
  EXPECT_THAT(mistake({"serve", "--config", write("port: {\n")}), HasSubstr(".yaml:"));
  EXPECT_THAT(mistake({"serve", "--config", write("just text")}), HasSubstr("option: value"));
  EXPECT_THAT(mistake({"serve", "--config", "/dev/zero"}), HasSubstr("'/dev/zero' is larger than 1 MiB"));
  EXPECT_THAT(mistake({"serve", "--config", "/does/not/exist.yaml"}), HasSubstr("cannot read '/does/not/exist.yaml'"));
}

ServeOptions options_of(const char* file) { return std::get<ServeOptions>(parse({"serve", "--config", file})); }

// A variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;

 private:
  const char* name_;
};

TEST_F(ConfigFile, HasTheGroupsOfTheHelpAsSections) {
  const auto options = options_of(write("listening:\n  port: 9000\nbatching:\n  max-batch: 4\nmodel:\n  ctx: 99\ntemperature: 0.5\n"));
  EXPECT_EQ(options.http.listen.front().port, 9000);
  EXPECT_EQ(options.batch.max_batch, 4);
  EXPECT_EQ(options.model.context, 99);
  EXPECT_EQ(options.defaults.temperature, 0.5);
  EXPECT_THAT(mistake({"serve", "--config", write("batching:\n  port: 1\n")}),
              HasSubstr(".yaml:2: 'port' is no option of the section 'batching'"));
  EXPECT_THAT(mistake({"serve", "--config", write("batching:\n\n  max-bach: 1\n")}),
              HasSubstr(".yaml:3: there is no option 'max-bach': is 'max-batch' meant?"));
  EXPECT_THAT(mistake({"serve", "--config", write("baching:\n  max-batch: 1\n")}),
              HasSubstr(".yaml:1: there is no option 'baching': is 'batching' meant?"));
  EXPECT_THAT(mistake({"serve", "--config", write("port: 1\nlistening:\n  port: 1\n")}),
              HasSubstr(".yaml:3: 'port' stands here for the second time"));
  EXPECT_THAT(mistake({"serve", "--config", write("zzzzzzzz: 1\n")}), Not(HasSubstr("meant")));
}

TEST_F(ConfigFile, GivesWayToTheEnvironmentAndThatToTheCommandLine) {
  const char* path = write("max-batch: 1\nmax-waiting: 1\nmax-batch-tokens: 9\naccess-log: true\n");
  const Variable batch("BRAID_MAX_BATCH", "2");
  const Variable waiting("BRAID_MAX_WAITING", "2");
  const Variable log("BRAID_ACCESS_LOG", "");
  const Variable origins("BRAID_CORS_ORIGIN", "https://a.example,https://b.example");
  const auto options = std::get<ServeOptions>(parse({"serve", "--config", path, "--max-batch", "3"}));
  EXPECT_EQ(options.batch.max_batch, 3);
  EXPECT_EQ(options.batch.max_waiting, 2);
  EXPECT_EQ(options.batch.max_batch_tokens, 9);
  EXPECT_TRUE(options.log.access);
  EXPECT_EQ(options.http.cors_origins.size(), 2U);
  const Variable wrong("BRAID_PREFILL_SLICE_MS", "soon");
  EXPECT_THAT(mistake({"serve"}), HasSubstr("BRAID_PREFILL_SLICE_MS: --prefill-slice-ms: 'soon'"));
  EXPECT_EQ(std::get<RunOptions>(parse({"run", "Hello"})).prompt, "Hello") << "which is no server";
}

TEST_F(ConfigFile, IsFoundWhereNoneIsNamed) {
  const test::Folder home;
  std::filesystem::create_directories(home / ".config/braid");
  std::ofstream(home / ".config/braid/braid.yaml") << "max-batch: 5\n";
  const Variable set_home("HOME", (home / "").c_str());
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve"})).batch.max_batch, 5);
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve", "--config", "off"})).batch.max_batch, 256);
  const char* path = write("max-batch: 6\n");
  EXPECT_EQ(options_of(path).batch.max_batch, 6);
  const Variable named("BRAID_CONFIG", path);
  EXPECT_EQ(std::get<ServeOptions>(parse({"serve"})).batch.max_batch, 6);
}

std::string told_by(ConfigOptions::Action action, std::string file) {
  const Result<std::string> text = config_text({action, std::move(file)});
  return text ? *text : "wrong: " + text.error().message;
}

TEST_F(ConfigFile, IsCheckedAndShown) {
  EXPECT_THAT(told_by(ConfigOptions::Action::kCheck, write("port: 1\n")), HasSubstr(".yaml is right"));
  EXPECT_THAT(told_by(ConfigOptions::Action::kCheck, write("port: 1\npart: 2\n")),
              HasSubstr(".yaml:2: there is no option 'part': is 'port' meant?"));
  EXPECT_THAT(told_by(ConfigOptions::Action::kCheck, write("tls-cert: a\n")), HasSubstr("wrong: --tls-cert and --tls-key go together"));
  const Variable batch("BRAID_MAX_BATCH", "2");
  const std::string shown = told_by(ConfigOptions::Action::kShow, write("port: 1\nmax-batch: 7\n"));
  EXPECT_THAT(shown, HasSubstr("\nport: '1'  # file\n"));
  EXPECT_THAT(shown, HasSubstr("\nmax-batch: '2'  # environment\n"));
  EXPECT_THAT(shown, HasSubstr("\nmax-waiting: 16384  # default\n"));
}

TEST_F(ConfigFile, VariablesThatAreNearlyAnOptionAreDoubted) {
  const Variable nearly("BRAID_MAX_BACH", "2");
  const Variable foreign("BRAID_MAX_QUEUE_SIZE", "2");
  const Variable secret("BRAID_API_KEYS", "sk-of-nobody");
  const Variable other("BRAID_SOURCE_OF_THE_TESTS", "x");
  const Variable right("BRAID_MAX_WAITING", "2");
  const auto doubts = std::get<ServeOptions>(parse({"serve"})).doubts;
  EXPECT_THAT(doubts, testing::IsSupersetOf({"the variable BRAID_MAX_BACH sets nothing: is BRAID_MAX_BATCH meant?",
                                             "the variable BRAID_MAX_QUEUE_SIZE sets nothing: it is called 'max-waiting'",
                                             "the variable BRAID_API_KEYS sets nothing: is BRAID_API_KEY meant?"}));
  EXPECT_THAT(doubts, testing::Each(Not(testing::AnyOf(HasSubstr("BRAID_SOURCE"), HasSubstr("BRAID_MAX_WAITING"), HasSubstr("sk-of")))));
  const char* path = write("port: 1\n");
  EXPECT_THAT(told_by(ConfigOptions::Action::kCheck, path), AllOf(HasSubstr("BRAID_MAX_BACH sets nothing"), HasSubstr(".yaml is right")));
  EXPECT_THAT(told_by(ConfigOptions::Action::kShow, path), HasSubstr("\n# the variable BRAID_MAX_BACH sets nothing: is BRAID_MAX_BATCH"));
}

TEST_F(ConfigFile, WrittenAnewIsRightAndHasEveryOption) {
  const std::string text = told_by(ConfigOptions::Action::kInit, "");
  EXPECT_THAT(told_by(ConfigOptions::Action::kCheck, write(text.c_str())), HasSubstr("is right"));
  const std::string help = std::get<Farewell>(parse({"serve", "--help"})).text;
  for (std::size_t at = help.find("\n    --"); at != std::string::npos; at = help.find("\n    --", at + 1)) {
    const std::string name = help.substr(at + 7, help.find_first_of(" ,=\n", at + 7) - at - 7);
    EXPECT_THAT(text, HasSubstr("\n  # " + name + ": ")) << name;
  }
}

TEST_F(ConfigFile, IsReadAgainForWhatMayChange) {
  const char* path = write("log-level: info\nmax-batch: 4\napi-key-file: keys\nrequests-per-minute: 5\n");
  ServeOptions options = options_of(path);
  EXPECT_TRUE(configure_again(options)->taken.empty());
  write("log-level: error\nmax-batch: 5\napi-key-file: keys\nrequests-per-minute: 6\ndrain-timeout: 3s\nblock-size: 32\n");
  const Result<Reconfiguration> again = configure_again(options);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->taken, (std::vector<std::string>{"drain-timeout", "log-level", "requests-per-minute"}));
  EXPECT_EQ(again->waiting, (std::vector<std::string>{"block-size", "max-batch"}));
  take_options(options, *again);
  EXPECT_EQ(options.log.level, "error");
  EXPECT_EQ(options.drain_timeout, std::chrono::seconds(3));
  EXPECT_EQ(options.batch.max_batch, 4);
  EXPECT_EQ(configure_again(options)->taken.size(), 0U);
  EXPECT_EQ(configure_again(options)->waiting.size(), 2U) << "which it is told each time";
  write("log-levl: info\n");
  EXPECT_THAT(configure_again(options).error().message, HasSubstr("is 'log-level' meant?"));
}

// Another server's settings: what it is told for each, and that the option does it.
TEST_F(ConfigFile, SettingsOfAnotherServerAreToldApart) {
  const std::vector<std::pair<std::string, std::string>> told = {{"adapter_path", "'lora: NAME=PATH'"},
                                                                 {"block_size", "'block-size'"},
                                                                 {"num_blocks", "'kv-memory'"},
                                                                 {"kv_bits", "'kv-dtype'"},
                                                                 {"kv_group_size", "'kv-dtype"},
                                                                 {"ssd_cache_dir", "'kv-disk'"},
                                                                 {"ssd_ttl_days", "'kv-disk-ttl'"},
                                                                 {"ssd_enabled", "'kv-disk'"},
                                                                 {"max_batch_size", "'max-batch'"},
                                                                 {"prefill_batch_size", "'max-batch-tokens'"},
                                                                 {"prefill_step_size", "'max-batch-tokens'"},
                                                                 {"max_queue_size", "'max-waiting'"},
                                                                 {"completion_batch_size", "'max-batch'"},
                                                                 {"max_kv_size", "'max-kv-size'"},
                                                                 {"sequence_cache_size", "'kv-memory'"},
                                                                 {"default_max_tokens", "'max-tokens'"},
                                                                 {"default_temperature", "'temperature'"},
                                                                 {"default_top_p", "'top-p'"},
                                                                 {"use_distributed", "'ranks: N'"}};
  for (const auto& [name, words] : told)
    EXPECT_THAT(mistake({"serve", "--config", write((name + ": 1\n").c_str())}),
                AllOf(HasSubstr("no option '" + name + "': "), HasSubstr(words)));
}

TEST_F(ConfigFile, OptionsDoWhatAnotherServersSettingsDo) {
  const auto options = options_of(
      write("model: m.gguf\nhost: 0.0.0.0\nport: 81\nblock-size: 32\nkv-memory: 1GiB\nkv-dtype: int8\nkv-disk: /tmp/kv\nkv-disk-ttl: 3d\n"
            "max-batch: 7\nmax-batch-tokens: 512\nmax-waiting: 9\nmax-kv-size: 2048\nmax-tokens: 33\ntemperature: 0.25\n"
            "top-p: 0.75\n"));
  EXPECT_EQ(options.files, std::vector<std::string>{"m.gguf"});                 // model
  EXPECT_EQ(options.http.listen.front().host, "0.0.0.0");                       // host
  EXPECT_EQ(options.http.listen.front().port, 81);                              // port
  EXPECT_EQ(options.model.block_size, 32);                                      // block_size
  EXPECT_EQ(options.model.kv_memory, 1ULL << 30U);                              // num_blocks
  EXPECT_EQ(options.model.kv_type, kernels::KvType::kInt8);                     // kv_bits
  EXPECT_EQ(options.disk.directory, "/tmp/kv");                                 // ssd_cache_dir, ssd_enabled
  EXPECT_EQ(options.disk.ttl, std::chrono::days(3));                            // ssd_ttl_days
  EXPECT_EQ(options.batch.max_batch, 7);                                        // max_batch_size, completion_batch_size
  EXPECT_EQ(options.batch.max_batch_tokens, 512);                               // prefill_step_size, prefill_batch_size
  EXPECT_EQ(options.batch.max_waiting, 9);                                      // max_queue_size
  EXPECT_EQ(options.model.max_kv_size, 2048);                                   // max_kv_size
  EXPECT_FALSE(options_of(write("prefix-cache: 'off'\n")).batch.prefix_cache);  // sequence_cache_size
  EXPECT_EQ(options.defaults.max_tokens, 33);                                   // default_max_tokens
  EXPECT_EQ(options.defaults.temperature, 0.25);                                // default_temperature
  EXPECT_EQ(options.defaults.top_p, 0.75);                                      // default_top_p
}

}  // namespace
}  // namespace braid::app
