// make_twin FILE OUT: a model that computes the same with outliers among its activations or weights (outlier_twins.h), its matrices encoded
// as another type. With --profile plain --type f32 it is the file's own float32 evaluation, for programs that have none.
#include "perf/model/outlier_twins.h"
#include "perf/model/recoded_weights.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

namespace {

struct Options {
  std::string file;
  std::string out;
  std::string profile = "realistic";
  std::string type = "q8_0";
  std::int64_t repeat = 1;
  braid::perf::Outliers outliers;
};

braid::Result<void> make_twin(const Options& options) {
  using namespace braid;
  auto file = files::GgufFile::open(options.file);
  if (!file) return file.error();
  auto model = perf::FloatModel::read(*file);
  if (!model) return model.error();
  for (const char* name : {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight", "blk.0.attn_v.weight",
                           "blk.0.ffn_norm.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_down.weight"}) {
    if (model->find(name) == nullptr) return invalid_argument(options.file + " has no " + name + ": it is not like a Llama");
  }
  if (model->find("blk.0.attn_v.bias") != nullptr) return invalid_argument(options.file + " has biases, which are not scaled");
  perf::repeat_hidden_units(*model, options.repeat);
  perf::twin_profiles().at(options.profile)(*model, options.outliers);
  return model->write(options.out, perf::weight_types().at(options.type));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Writes a model that computes the same with outliers"};
  app.add_option("file", options.file, "GGUF file of a Llama-like model")->required();
  app.add_option("out", options.out, "GGUF file to write")->required();
  app.add_option("--profile", options.profile, "Where the outliers are")
      ->check(CLI::IsMember(braid::perf::twin_profiles()))
      ->capture_default_str();
  app.add_option("--count", options.outliers.of_256, "Channels of each 256, of a uniform profile")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--by", options.outliers.by, "What they are multiplied by")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--repeat-hidden", options.repeat, "Each hidden unit so many times")->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--type", options.type, "Type of the matrices")->check(CLI::IsMember(braid::perf::weight_types()))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto made = make_twin(options);
  if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 2;
  return 0;
}
