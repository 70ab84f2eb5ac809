// model_bench FILE: tokens per second of prefill and of decode at several batch sizes, through the step executor, without HTTP and
// without a scheduler. One JSON object on stdout. For comparisons run it in turns with the other program.
#include "kernels/kv_type.h"
#include "kernels/select.h"
#include "kernels/thread_team.h"
#include "model/language_model.h"
#include "model/weights.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace {

using braid::kernels::KvType;
using namespace braid::files;
using namespace braid::model;
using namespace braid::step;

struct Options {
  std::string file;
  std::string isa;
  int threads = braid::kernels::usable_cpus();
  std::int32_t prefill = 512;
  std::vector<std::int32_t> rows = {1, 8, 32, 64};
  std::int32_t prompt = 128;
  std::int32_t tokens = 64;
  int repeat = 3;
  bool cpu_time = false;
  bool pin_threads = false;
  bool fast_weights = false;
  HugePages huge_pages = HugePages::kTransparent;
  std::optional<KvType> kv_type;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Of this process, in MiB: what is resident, and the most that was. Pages of the file that are mapped in count.
struct Memory {
  double resident;
  double peak;
};

Memory memory() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  statm >> size >> resident;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / (1 << 20), static_cast<double>(usage.ru_maxrss) / 1024};
}

// Bytes of weights that a step reads: all tensors, the embedding table only where it is the output matrix, too.
std::uint64_t step_bytes(const GgufFile& file) {
  std::uint64_t bytes = 0;
  for (const GgufTensor& tensor : file.tensors())
    if (tensor.name != "token_embd.weight" || file.tensor("output.weight") == nullptr) bytes += tensor.bytes.size();
  return bytes;
}

class Bench {
 public:
  Bench(LanguageModel& model, std::int32_t blocks, bool cpu_time) : model_(model), blocks_(blocks), cpu_time_(cpu_time) {}

  // Seconds of one step that prefills `rows` sequences of `length` tokens each.
  double prefill(std::int32_t rows, std::int32_t length, std::int32_t context) {
    const std::int32_t block_tokens = model_.kv_layout().block_tokens;
    const std::int32_t per_row = (context + block_tokens - 1) / block_tokens;
    const std::int32_t groups = model_.kv_groups().count();
    plan_.clear();
    for (std::int32_t i = 0; i < rows * per_row * groups; ++i) plan_.blocks.push_back(i % blocks_);
    const std::int32_t state = model_.kv_groups().states.blocks();  // each sequence has one of its own, behind the blocks of positions
    for (std::int32_t i = 0; i < rows * state; ++i) plan_.blocks.push_back(blocks_ + i);
    for (std::int32_t row = 0; row < rows; ++row) {
      const auto slot = static_cast<SlotId>(row);
      plan_.starts.push_back({slot, {.temperature = 0.0F}, {.max_tokens = context, .ignore_eos = true, .stop_token_ids = {}}, 0});
      plan_.rows.push_back({.slot = slot,
                            .count = length,
                            .token_begin = static_cast<std::uint32_t>(plan_.tokens.size()),
                            .block_begin = static_cast<std::uint32_t>(row * per_row * groups),
                            .block_count = static_cast<std::uint32_t>(per_row),
                            .output = RowOutput::kSample,
                            .state_begin = static_cast<std::uint32_t>(rows * per_row * groups + row * state)});
      for (std::int32_t i = 0; i < length; ++i) plan_.tokens.push_back((row * 7919 + i * 104729 + 17) % model_.shape().vocab);
    }
    return step();
  }

  // Seconds of `tokens` decode steps of the sequences prefilled last.
  double decode(std::int32_t position, std::int32_t tokens) {
    plan_.starts.clear();
    plan_.tokens.clear();
    double seconds = 0.0;
    for (std::int32_t i = 0; i < tokens; ++i) {
      for (StepRow& row : plan_.rows) {
        row.position = position + i;
        row.count = 1;
        row.input = RowInput::kSampled;
      }
      seconds += step();
    }
    return seconds;
  }

 private:
  double step() {
    const std::clock_t begin = std::clock();
    model_.execute(plan_, result_);
    if (result_.failure) std::rethrow_exception(result_.failure);
    return cpu_time_ ? static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC : result_.seconds;
  }

  LanguageModel& model_;
  std::int32_t blocks_;
  bool cpu_time_;
  StepPlan plan_;
  StepResult result_;
};

braid::Result<const braid::kernels::KernelTable*> choose_table(const std::string& isa, bool float_weights) {
  if (isa.empty()) {
    const auto& best = braid::kernels::best_kernel_table();
    return float_weights ? &braid::kernels::for_float_weights(best) : &best;
  }
  const auto parsed = braid::kernels::parse_isa(isa);
  std::string missing = "no such instruction set";
  const auto* table = parsed ? braid::kernels::kernel_table(*parsed, missing) : nullptr;
  if (table == nullptr) return braid::invalid_argument(isa + ": " + missing);
  return table;
}

braid::Result<std::string> measure(const Options& options) {
  const Memory empty = memory();
  auto file = GgufFile::open(options.file);
  if (!file) return file.error();
  auto table = choose_table(options.isa, braid::model::has_float_weights(*file, {}));
  if (!table) return table.error();
  const std::int32_t most_rows = std::max(1, *std::ranges::max_element(options.rows));
  LoadOptions load{.threads = options.threads,
                   .cpus = {},
                   .huge_pages = options.huge_pages,
                   .kv_type = options.kv_type,
                   .packing = {.float_type = {}, .rotated = options.fast_weights},
                   .max_batch = most_rows,
                   .end_tokens = {},
                   .progress = {}};
  if (options.pin_threads) {
    load.cpus = braid::kernels::allowed_cpus();
    if (static_cast<std::size_t>(options.threads) > load.cpus.size())
      return braid::invalid_argument("more threads than CPUs to pin them to");
    load.cpus.resize(static_cast<std::size_t>(options.threads));
  }
  auto model = LanguageModel::load(*file, **table, load);
  if (!model) return model.error();
  const Memory loaded = memory();
  const std::int32_t context = options.prompt + options.tokens;
  const std::int32_t block_tokens = (*model)->kv_layout().block_tokens;
  const std::int32_t blocks =
      std::max(most_rows * ((context + block_tokens - 1) / block_tokens), (options.prefill + block_tokens - 1) / block_tokens);
  if (auto allocated = (*model)->allocate_kv(blocks + most_rows * (*model)->kv_groups().states.blocks()); !allocated)
    return allocated.error();

  Bench bench(**model, blocks, options.cpu_time);
  // As a server that has run for a while: once all memory has been touched, which the first prompt of a new process pays for.
  bench.prefill(1, std::max(options.prefill, 1), std::max(options.prefill, 1));
  std::string figures;
  std::vector<double> seconds;
  for (int i = 0; i < options.repeat && options.prefill > 0; ++i) seconds.push_back(bench.prefill(1, options.prefill, options.prefill));
  if (!seconds.empty()) figures = fmt::format("\"prefill_{}\": {:.1f}", options.prefill, options.prefill / median(seconds));
  for (const std::int32_t rows : options.rows) {
    seconds.clear();
    for (int i = 0; i < options.repeat && rows > 0; ++i) {
      bench.prefill(rows, options.prompt, context);
      seconds.push_back(bench.decode(options.prompt, options.tokens));
    }
    if (!seconds.empty())
      figures += fmt::format("{}\"decode_{}\": {:.1f}", figures.empty() ? "" : ", ", rows, rows * options.tokens / median(seconds));
  }
  return fmt::format(
      "{{\"file\": \"{}\", \"isa\": \"{}\", \"threads\": {}, \"prompt\": {}, \"tokens\": {}, \"resident_mib\": {:.1f}, \"peak_mib\": "
      "{:.1f}, \"step_bytes\": {}, "
      "\"tokens_per_second\": {{{}}}}}",
      options.file, (*table)->name, options.threads, options.prompt, options.tokens, loaded.resident - empty.resident,
      loaded.peak - empty.resident, step_bytes(*file), figures);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Tokens per second of a model, without HTTP"};
  app.add_option("file", options.file, "GGUF file")->required();
  app.add_option("--isa", options.isa, "scalar, avx2, avx512 or amx; default: the best of this machine");
  app.add_option("--threads", options.threads, "Threads")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--prefill", options.prefill, "Tokens of the prefill figure; 0 leaves it out")->capture_default_str();
  app.add_option("--rows", options.rows, "Batch sizes of the decode figures; 0 leaves them out")->delimiter(',')->capture_default_str();
  app.add_option("--prompt", options.prompt, "Prompt of the decode figures")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--tokens", options.tokens, "Tokens generated for each row")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_flag("--cpu-time", options.cpu_time, "Rates of processor time instead of wall time: for a busy machine, with one thread");
  app.add_flag("--pin-threads", options.pin_threads, "Each thread on a CPU of its own");
  const std::map<std::string, HugePages> pages = {
      {"off", HugePages::kOff}, {"transparent", HugePages::kTransparent}, {"explicit", HugePages::kExplicit}};
  app.add_flag("--fast-weights", options.fast_weights, "As braid serve takes it");
  app.add_option("--huge-pages", options.huge_pages, "As braid serve takes it")->transform(CLI::CheckedTransformer(pages));
  app.add_option("--repeat", options.repeat, "Runs, of which the median counts")->check(CLI::Range(1, 1000))->capture_default_str();
  std::string kv_type = "auto";
  app.add_option("--kv-dtype", kv_type, "Keys and values: auto (as braid serve), f32, f16, bf16 or int8")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16", "int8"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  options.kv_type = braid::kernels::parse_kv_type(kv_type);
  const auto report = measure(options);
  if (!report) return std::fprintf(stderr, "%s\n", report.error().message.c_str()), 1;
  std::printf("%s\n", report->c_str());
  return 0;
}
