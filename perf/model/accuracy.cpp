// accuracy FILE: what quantised arithmetic and quantised keys and values cost. Runs the same windows of text through the model and
// through a reference, and prints for each KV type the mean negative log-likelihood of the next token and its change against the
// reference, the mean KL divergence per token and how often both prefer the same token. One JSON object on stdout. The reference is
// the weights dequantised to F32 with f32 keys and values (--reference: another file's), or with --own-weights the model itself with f16
// ones. --weights encodes the file's weights as another type first, for both; what --fast-weights rotates (model::Packing) is rotated in the model only.
#include "kernels/kv_type.h"
#include "kernels/packed_layout.h"
#include "kernels/select.h"
#include "model/families/families.h"
#include "perf/model/divergence.h"
#include "perf/model/forward_run.h"
#include "perf/model/recoded_weights.h"
#include "text/codec.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace braid;
using kernels::KvType;
using perf::Divergence;
using perf::ForwardRun;

struct Options {
  std::string file;
  std::string reference;  // another file's weights in float32; empty: the file's
  std::string text;       // empty: random tokens
  std::string isa;
  int threads = kernels::usable_cpus();
  std::int32_t windows = 8;
  std::int32_t length = 1024;  // tokens of a window
  std::int32_t last = 0;       // positions that count, at the end of a window; 0: all
  std::vector<std::string> kv_types = {"f16"};
  std::string weights;  // a type; empty: as in the file
  bool own_weights = false;
  bool fast_weights = false;
  double most_nll_change = 0.0;  // bars; 0: none
  double most_kl = 0.0;
  double least_same_top = 0.0;
};

struct Candidate {
  std::string name;
  std::unique_ptr<ForwardRun> run;
  Divergence sum;

  double change() const { return sum.nll / sum.reference_nll - 1.0; }
  // The standard error of change(), positions taken as independent.
  double change_error() const {
    const auto count = static_cast<double>(sum.positions);
    const double mean = (sum.nll - sum.reference_nll) / count;
    const double variance = std::max(0.0, sum.squared_change / count - mean * mean);
    return std::sqrt(variance / count) / (sum.reference_nll / count);
  }
  double kl() const { return sum.kl / static_cast<double>(sum.positions); }
  // The standard error of kl(), likewise.
  double kl_error() const {
    const auto count = static_cast<double>(sum.positions);
    return std::sqrt(std::max(0.0, sum.squared_kl / count - kl() * kl()) / count);
  }
  double same_top() const { return static_cast<double>(sum.same_top) / static_cast<double>(sum.positions); }
};

Result<std::vector<TokenId>> read_tokens(const Options& options, const files::GgufFile& file, std::int32_t vocab) {
  const auto wanted = static_cast<std::size_t>(options.windows) * static_cast<std::size_t>(options.length);
  std::vector<TokenId> tokens;
  if (options.text.empty()) {
    std::mt19937 random(1);
    std::uniform_int_distribution<TokenId> any(0, vocab - 1);
    for (std::size_t i = 0; i < wanted; ++i) tokens.push_back(any(random));
    return tokens;
  }
  std::ifstream in(options.text, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto codec = text::ModelCodec::from_gguf(file);
  if (!codec) return codec.error();
  auto encoded = (*codec)->encode(text, {.add_special = false});
  if (!encoded) return encoded.error();
  if (encoded->size() < wanted)
    return invalid_argument(
        fmt::format("{} has {} tokens, {} windows of {} need {}", options.text, encoded->size(), options.windows, options.length, wanted));
  encoded->resize(wanted);
  return encoded;
}

// Runs one window through everything; each position predicts the token after it.
void run_window(std::span<const TokenId> window, std::int32_t first_counted, std::int32_t vocab, kernels::ThreadTeam& team,
                ForwardRun& reference, std::vector<Candidate>& candidates) {
  const auto length = static_cast<std::int32_t>(window.size());
  for (std::int32_t begin = 0; begin < length; begin += ForwardRun::kRows) {
    const std::int32_t rows = std::min(ForwardRun::kRows, length - begin);
    const auto tokens = window.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(rows));
    reference.forward(tokens, begin);
    for (Candidate& candidate : candidates) candidate.run->forward(tokens, begin);
    const std::int32_t from = std::max(0, first_counted - begin);
    const std::int32_t to = std::min(rows, length - 1 - begin);
    if (from >= to) continue;
    const model::Rows expected = reference.logits();
    for (Candidate& candidate : candidates) {
      const model::Rows logits = candidate.run->logits();
      std::vector<Divergence> sums(static_cast<std::size_t>(team.size()));
      team.for_chunks(to - from, 1, [&](std::int64_t row_begin, std::int64_t row_end, int member) {
        for (std::int64_t row = from + row_begin; row < from + row_end; ++row)
          sums[static_cast<std::size_t>(member)].add(perf::compare({expected[row], static_cast<std::size_t>(vocab)},
                                                                   {logits[row], static_cast<std::size_t>(vocab)},
                                                                   window[static_cast<std::size_t>(begin + row + 1)]));
      });
      for (const Divergence& sum : sums) candidate.sum.add(sum);
    }
  }
}

Result<const kernels::KernelTable*> choose_table(const std::string& isa, bool float_weights) {
  if (isa.empty()) {
    const kernels::KernelTable& best = kernels::best_kernel_table();
    return float_weights ? &kernels::for_float_weights(best) : &best;
  }
  const auto parsed = kernels::parse_isa(isa);
  std::string missing = "no such instruction set";
  const auto* table = parsed ? kernels::kernel_table(*parsed, missing) : nullptr;
  if (table == nullptr) return invalid_argument(isa + ": " + missing);
  return table;
}

std::string report_of(const Options& options, const char* isa, const std::vector<Candidate>& candidates) {
  std::string lines;
  for (const Candidate& candidate : candidates)
    lines += fmt::format(
        "{}\n  {{\"kv\": \"{}\", \"nll\": {:.5f}, \"nll_change\": {:.6f}, \"nll_change_error\": {:.6f}, \"kl\": {:.4e}, \"kl_error\": "
        "{:.1e}, "
        "\"worst_kl\": {:.3e}, \"same_top\": {:.5f}}}",
        lines.empty() ? "" : ",", candidate.name, candidate.sum.nll / static_cast<double>(candidate.sum.positions), candidate.change(),
        candidate.change_error(), candidate.kl(), candidate.kl_error(), candidate.sum.worst_kl, candidate.same_top());
  const Divergence& first = candidates.front().sum;
  return fmt::format(
      "{{\"file\": \"{}\", \"weights\": \"{}\", \"isa\": \"{}\", \"reference\": \"{}\", \"positions\": {}, \"reference_nll\": {:.5f}, "
      "\"reference_entropy\": {:.5f}, \"models\": [{}]}}",
      options.file, options.weights.empty() ? "as stored" : options.weights, isa, options.own_weights ? "own weights, f16 kv" : "float32",
      first.positions, first.reference_nll / static_cast<double>(first.positions),
      first.reference_entropy / static_cast<double>(first.positions), lines);
}

// `isa`, or for "all" every tier that this machine has.
std::vector<std::string> tiers_of(const std::string& isa) {
  if (isa != "all") return {isa};
  std::vector<std::string> tiers;
  for (const char* name : {"scalar", "avx2", "avx512", "amx"}) {
    std::string missing;
    if (kernels::kernel_table(*kernels::parse_isa(name), missing) != nullptr) tiers.emplace_back(name);
  }
  return tiers;
}

bool within_bars(const Options& options, const Candidate& candidate) {
  return (options.most_nll_change == 0.0 || std::fabs(candidate.change()) <= options.most_nll_change) &&
         (options.most_kl == 0.0 || candidate.kl() <= options.most_kl) && candidate.same_top() >= options.least_same_top;
}

// Another file whose float32 evaluation is the reference. It has the same vocabulary.
struct Other {
  model::ModelShape model;
  model::Weights weights;
};

Result<Other> load_other(const std::string& path, const kernels::KernelTable& table, kernels::ThreadTeam& team) {
  auto file = files::GgufFile::open(path);
  if (!file) return file.error();
  auto model = model::describe_model(*file);
  if (!model) return model.error();
  auto weights = model::load_weights(*file, *model, model->context_length, table, team, {});
  if (!weights) return weights.error();
  return Other{std::move(*model), std::move(*weights)};
}

Result<bool> measure(const Options& options) {
  auto file = files::GgufFile::open(options.file);
  if (!file) return file.error();
  const bool float_weights =
      options.weights.empty() ? model::has_float_weights(*file, {}) : !kernels::is_quantized(perf::weight_types().at(options.weights));
  auto table = choose_table(options.isa, float_weights);
  if (!table) return table.error();
  auto model = model::describe_model(*file);
  if (!model) return model.error();
  if (options.length > model->context_length)
    return invalid_argument(fmt::format("windows of {} tokens do not fit the context of {}", options.length, model->context_length));
  auto tokens = read_tokens(options, *file, model->vocab);
  if (!tokens) return tokens.error();

  kernels::ThreadTeam team(options.threads);
  auto stored = model::load_weights(*file, *model, model->context_length, **table, team, {});
  if (!stored) return stored.error();
  const auto type = options.weights.empty() ? perf::WantedType([](const auto& matrix, bool) { return matrix.type; })
                                            : perf::all_as(perf::weight_types().at(options.weights));
  auto encoded = perf::recoded_weights(*stored, type, **table, team);
  if (!encoded) return encoded.error();
  auto rotated =
      options.fast_weights ? perf::recoded_weights(*encoded, perf::rotated, **table, team) : Result<model::Weights>(model::Weights{});
  if (!rotated) return rotated.error();
  const model::Weights& weights = options.fast_weights ? *rotated : *encoded;
  auto other = options.reference.empty() ? Result<Other>(Other{}) : load_other(options.reference, **table, team);
  if (!other) return other.error();
  const bool own = options.reference.empty();
  auto dense = options.own_weights
                   ? Result<model::Weights>(model::Weights{})
                   : perf::recoded_weights(own ? *encoded : other->weights, perf::all_as(kernels::WeightType::kF32), **table, team);
  if (!dense) return dense.error();
  auto reference = ForwardRun::create(own ? *model : other->model, options.own_weights ? weights : *dense, **table, team,
                                      options.own_weights ? KvType::kF16 : KvType::kF32, options.length);
  if (!reference) return reference.error();
  std::vector<Candidate> candidates;
  for (const std::string& name : options.kv_types) {
    auto run = ForwardRun::create(*model, weights, **table, team, *kernels::parse_kv_type(name), options.length);
    if (!run) return run.error();
    candidates.push_back({name, std::move(*run), {}});
  }
  const std::int32_t first_counted = options.last > 0 ? std::max(0, options.length - 1 - options.last) : 0;
  const auto length = static_cast<std::size_t>(options.length);
  for (std::size_t begin = 0; begin < tokens->size(); begin += length)
    run_window(std::span(*tokens).subspan(begin, length), first_counted, model->vocab, team, **reference, candidates);
  std::printf("%s\n", report_of(options, (*table)->name, candidates).c_str());
  return std::ranges::all_of(candidates, [&](const Candidate& candidate) { return within_bars(options, candidate); });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"What quantised arithmetic and quantised keys and values cost a model"};
  app.add_option("file", options.file, "GGUF file")->required();
  app.add_option("--reference", options.reference, "A file with the same shape whose float32 evaluation is the reference");
  app.add_option("--text", options.text, "Text to predict; random tokens if not given")->check(CLI::ExistingFile);
  app.add_option("--isa", options.isa, "scalar, avx2, avx512, amx, or all that this machine has; default: the best of them");
  app.add_option("--threads", options.threads, "Threads")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--windows", options.windows, "Windows")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--length", options.length, "Tokens of a window")->check(CLI::Range(2, 1 << 20))->capture_default_str();
  app.add_option("--last", options.last, "Positions that count, at the end of each window; 0: all")->capture_default_str();
  app.add_option("--kv-dtype", options.kv_types, "Keys and values to compare")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "f16", "bf16", "int8"}))
      ->capture_default_str();
  app.add_option("--weights", options.weights, "Type that the weights are encoded as first; as in the file if not given")
      ->check(CLI::IsMember(perf::weight_types()));
  app.add_flag("--own-weights", options.own_weights, "Against the model itself with f16 keys and values");
  app.add_flag("--fast-weights", options.fast_weights, "Feed-forward matrices of Q8_0 are rotated, as when serving with this option");
  app.add_option("--max-nll-change", options.most_nll_change, "Fail above this relative change, such as 0.005; 0: any");
  app.add_option("--max-kl", options.most_kl, "Fail above this mean KL per token; 0: any");
  app.add_option("--min-same-top", options.least_same_top, "Fail below this share of equal first choices");
  CLI11_PARSE(app, argc, argv);
  bool passed = true;
  for (const std::string& isa : tiers_of(options.isa)) {
    options.isa = isa;
    const auto within = measure(options);
    if (!within) return std::fprintf(stderr, "%s\n", within.error().message.c_str()), 2;
    passed = passed && *within;
  }
  return passed ? 0 : 1;
}
