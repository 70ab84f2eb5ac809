// Time to make the token mask of one constrained row, along answers as a model writes them. BRAID_VOCAB names a GGUF file with the
// tokenizer. Times are of the thread's processor time. Each iteration replays one answer; the counters are of its single steps:
// with all masks of states known (median_us, p99_us, max_us), on the first answer after compiling (first_median_us, first_max_us),
// and the compilation (compile_ms).
#include "app/constraint_vocabulary.h"
#include "grammar/compiler.h"
#include "net/json/parse.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

using namespace braid;

// Of this thread: other work on the machine does not count.
double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

struct Scenario {
  std::string name;
  ConstraintSpec spec;
  std::string answer;
};

ConstraintSpec schema(std::string json) {
  auto value = net::json::parse(json);
  if (!value) std::abort();
  return {ConstraintSpec::JsonSchema{std::move(*value)}, "schema"};
}

const char* kPerson = R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"bio":{"type":"string"},
  "tags":{"type":"array","items":{"type":"string"}}},"required":["name","age","bio","tags"],"additionalProperties":false})";
const char* kPersonText =
    "{\n  \"name\": \"Ada Lovelace\",\n  \"age\": 36,\n  \"bio\": \"An English mathematician and writer, known for her work on "
    "Charles "
    "Babbage's proposed mechanical general-purpose computer, the Analytical Engine — she wrote the first \\\"program\\\".\",\n  "
    "\"tags\": [\"mathematics\", \"computing\", \"poetry\"]\n}";

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all;
  all.push_back({"json_object", {ConstraintSpec::JsonObject{}, "response_format"}, kPersonText});
  all.push_back({"schema", schema(kPerson), kPersonText});
  all.push_back(
      {"schema_bounded_strings",
       schema(
           R"({"type":"object","properties":{"title":{"type":"string","maxLength":40},"text":{"type":"string","minLength":10,"maxLength":400}},"required":["title","text"]})"),
       R"({"title":"A short title of some words","text":"It was a bright cold day in April, and the clocks were striking thirteen. Winston Smith slipped quickly through the glass doors."})"});
  all.push_back(
      {"schema_pattern",
       schema(
           R"({"type":"object","properties":{"slug":{"type":"string","pattern":"^[a-z]+(-[a-z]+)*$"},"text":{"type":"string","pattern":"^[A-Za-z ,.]{5,300}$"},"when":{"type":"string","format":"date-time"}},"required":["slug","text","when"]})"),
       R"({"slug":"the-quick-brown-fox","text":"It was a bright cold day in April, and the clocks were striking thirteen.","when":"2024-05-17T12:30:00Z"})"});
  all.push_back(
      {"schema_recursive",
       schema(
           R"({"$defs":{"n":{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["name","children"],"additionalProperties":false}},"$ref":"#/$defs/n"})"),
       R"({"name":"root","children":[{"name":"left side","children":[{"name":"leaf one","children":[]},{"name":"leaf two","children":[]}]},{"name":"right side","children":[]}]})"});
  all.push_back({"regex",
                 {ConstraintSpec::Regex{R"((Yes|No), because [^\n]{10,200}\.)"}, "regex"},
                 "Yes, because the sky is blue and the grass is green in the early morning light."});
  all.push_back({"choice", {ConstraintSpec::Choice{{"positive", "negative", "neutral"}}, "choice"}, "negative"});
  ConstraintSpec::Sequence call;
  call.parts = {
      {ConstraintSpec::FreeUntil{"</think>"}, "tools"},
      {ConstraintSpec::Literal{"\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "}, "tools"},
      schema(
          R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"]})"),
      {ConstraintSpec::Literal{"}\n</tool_call>"}, "tools"}};
  all.push_back({"tool_call",
                 {call, "tools"},
                 "The user asks for the weather in Berlin; I should call the tool.</think>\n\n<tool_call>\n{\"name\": "
                 "\"get_weather\", \"arguments\": {\"city\": \"Berlin\", \"days\": 3}}\n</tool_call>"});
  return all;
}

struct Times {
  double median = 0.0, p99 = 0.0, max = 0.0;
};

Times summary(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us[us.size() * 99 / 100], us.back()};
}

// Appends the time of each step's mask in microseconds.
void replay(const Constraint& constraint, const std::vector<TokenId>& answer, std::vector<std::uint32_t>& mask, std::vector<double>& us) {
  const auto state = constraint.start({});
  for (std::size_t i = 0; i <= answer.size(); ++i) {
    const double begin = cpu_us();
    state->fill_mask(mask);
    us.push_back(cpu_us() - begin);
    if (i == answer.size()) break;
    const auto token = static_cast<std::size_t>(answer[i]);
    if ((mask[token / 32] >> (token % 32) & 1U) == 0) std::fprintf(stderr, "token %zu of the answer is not allowed\n", i), std::exit(1);
    state->accept(answer[i]);
  }
}

void masks(benchmark::State& state, const Scenario& scenario, const text::ModelCodec& codec) {
  const grammar::Compiler compiler([&] { return app::constraint_vocabulary(codec); });
  if (!compiler.compile({ConstraintSpec::Choice{{"x"}}, ""})) std::abort();  // reads the vocabulary
  const double begin = cpu_us();
  const auto constraint = compiler.compile(scenario.spec);
  state.counters["compile_ms"] = (cpu_us() - begin) / 1000.0;
  if (!constraint) std::fprintf(stderr, "%s\n", constraint.error().message.c_str()), std::exit(1);
  const std::vector<TokenId> answer = codec.tokenizer().encode(scenario.answer, {.add_special = false});
  std::vector<std::uint32_t> mask((static_cast<std::size_t>(codec.vocab_size()) + 31) / 32);
  std::vector<double> first;
  replay(**constraint, answer, mask, first);
  std::vector<double> us;
  for (auto _ : state) replay(**constraint, answer, mask, us);
  state.counters["steps"] = static_cast<double>(answer.size() + 1);
  state.counters["first_median_us"] = summary(first).median;
  state.counters["first_max_us"] = summary(first).max;
  state.counters["median_us"] = summary(us).median;
  state.counters["p99_us"] = summary(us).p99;
  state.counters["max_us"] = summary(us).max;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const char* path = std::getenv("BRAID_VOCAB");
  if (path == nullptr) return std::fprintf(stderr, "BRAID_VOCAB must name a GGUF file\n"), 2;
  const auto file = files::GgufFile::open(path);
  if (!file) return std::fprintf(stderr, "%s\n", file.error().message.c_str()), 1;
  const auto codec = text::ModelCodec::from_gguf(*file);
  if (!codec) return std::fprintf(stderr, "%s\n", codec.error().message.c_str()), 1;
  const std::vector<Scenario> all = scenarios();
  for (const Scenario& scenario : all)
    benchmark::RegisterBenchmark(scenario.name.c_str(), [&](benchmark::State& state) {
      masks(state, scenario, **codec);
    })->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
