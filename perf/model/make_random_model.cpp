// make_random_model SHAPE TYPE FILE [--tokenizer GGUF] [--agreeing-head]: a GGUF file with random weights in the shape of a real model, with
// the tokenizer of another file or none.
#include "files/gguf.h"
#include "kernels/encode.h"
#include "perf/model/random_weights.h"
#include "perf/model/recoded_weights.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace {

using braid::kernels::WeightType;

struct Shape {
  const char* architecture;
  std::uint32_t layers, embedding, feed_forward, heads, kv_heads, vocab, context;
  float rope_base, epsilon;
  bool tied, biased, rope_divisors;
  std::vector<std::uint32_t> attending = {};  // layers with attention; none: all of them
  std::uint32_t head_dim = 0;                 // 0: the embedding over the heads
  std::uint32_t rotated = 0;                  // 0: all of a head
  // With a head for tokens further on that says what the model says: all that layers add is nothing, though they are computed, so that the next
  // token follows from the last one, and the head reads that alone.
  bool agreeing_head = false;

  std::uint32_t head() const { return head_dim > 0 ? head_dim : embedding / heads; }
  bool attends(std::uint32_t layer) const { return attending.empty() || std::ranges::find(attending, layer) != attending.end(); }
};

// Of qwen3.5-0.8b.
constexpr std::uint32_t kDeltaHeads = 16;
constexpr std::uint32_t kDeltaDim = 128;
constexpr std::uint32_t kDeltaTaps = 4;
constexpr std::uint32_t kShortTaps = 3;  // of lfm2-1.2b

const std::map<std::string, Shape> kShapes = {
    {"smollm2-135m", {"llama", 30, 576, 1536, 9, 3, 49152, 8192, 1e5F, 1e-5F, true, false, false}},
    {"qwen2.5-0.5b", {"qwen2", 24, 896, 4864, 14, 2, 151936, 32768, 1e6F, 1e-6F, true, true, false}},
    {"tinyllama-1.1b", {"llama", 22, 2048, 5632, 32, 4, 32000, 2048, 1e4F, 1e-5F, false, false, false}},
    {"llama-3.2-1b", {"llama", 16, 2048, 8192, 32, 8, 128256, 131072, 5e5F, 1e-5F, true, false, true}},
    {"lfm2-1.2b", {"lfm2", 16, 2048, 8192, 32, 8, 65536, 128000, 1e6F, 1e-5F, true, false, false, {2, 5, 8, 10, 12, 14}}},
    {"qwen3.5-0.8b", {"qwen35", 24, 1024, 3584, 8, 2, 248320, 262144, 1e7F, 1e-6F, true, false, false, {3, 7, 11, 15, 19, 23}, 256, 64}},
};

// Q4_K_M is a mix of types, see tensors_of.
std::map<std::string, WeightType> types() {
  std::map<std::string, WeightType> all = braid::perf::weight_types();
  all.emplace("q4_k_m", WeightType::kQ4_K);
  return all;
}

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // ggml order
  WeightType type;
  float deviation;        // 0: all are
  float constant = 1.0F;  // this
  bool unit = false;      // or those on the diagonal, the others 0
};

// In llama.cpp's mix Q4_K_M these are Q6_K: the output matrix, and values and down projections of the first and last eighth of the
// layers and of every third one between.
bool takes_more_bits(std::uint32_t layer, std::uint32_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

std::vector<Tensor> tensors_of(const Shape& shape, const std::string& type_name) {
  std::vector<Tensor> tensors;
  const WeightType type = types().at(type_name);
  const WeightType better = type_name == "q4_k_m" ? WeightType::kQ6_K : type;
  const auto matrix_of = [&](WeightType wanted, const std::string& name, std::uint64_t inputs, std::uint64_t outputs) {
    tensors.push_back({name,
                       {inputs, outputs},
                       braid::perf::fitting_type(wanted, static_cast<std::int64_t>(inputs)),
                       1.0F / std::sqrt(static_cast<float>(inputs))});
  };
  const auto matrix = [&](const std::string& name, std::uint64_t inputs, std::uint64_t outputs) { matrix_of(type, name, inputs, outputs); };
  const auto vector = [&](const std::string& name, std::uint64_t size, float deviation) {
    tensors.push_back({name, {size}, WeightType::kF32, deviation});
  };
  const std::uint64_t width = std::uint64_t{shape.head()} * shape.heads;
  const std::uint64_t kv_width = std::uint64_t{shape.head()} * shape.kv_heads;
  const std::string architecture = shape.architecture;
  const bool is_delta = architecture == "qwen35";
  // What a branch adds to the stream.
  const auto last_of = [&](WeightType wanted, const std::string& name, std::uint64_t inputs) {
    matrix_of(wanted, name, inputs, shape.embedding);
    if (shape.agreeing_head) tensors.back().deviation = tensors.back().constant = 0.0F;
  };
  const auto short_convolution = [&](const std::string& layer) {
    matrix(layer + "shortconv.in_proj.weight", shape.embedding, 3 * std::uint64_t{shape.embedding});
    tensors.push_back({layer + "shortconv.conv.weight", {kShortTaps, shape.embedding}, WeightType::kF32, 0.5F});
    last_of(type, layer + "shortconv.out_proj.weight", shape.embedding);
  };
  const auto delta_rule = [&](const std::string& layer) {
    const std::uint64_t inner = std::uint64_t{kDeltaHeads} * kDeltaDim;
    matrix(layer + "attn_qkv.weight", shape.embedding, 3 * inner);
    matrix(layer + "attn_gate.weight", shape.embedding, inner);
    matrix(layer + "ssm_alpha.weight", shape.embedding, kDeltaHeads);
    matrix(layer + "ssm_beta.weight", shape.embedding, kDeltaHeads);
    tensors.push_back({layer + "ssm_conv1d.weight", {kDeltaTaps, 3 * inner}, WeightType::kF32, 0.5F});
    tensors.push_back({layer + "ssm_a", {kDeltaHeads}, WeightType::kF32, 0.0F, -1.0F});
    vector(layer + "ssm_dt.bias", kDeltaHeads, 0.1F);
    vector(layer + "ssm_norm.weight", kDeltaDim, 0.0F);
    last_of(type, layer + "ssm_out.weight", inner);
  };
  matrix_of(shape.tied ? better : type, "token_embd.weight", shape.embedding, shape.vocab);
  for (std::uint32_t i = 0; i < shape.layers + (shape.agreeing_head ? 1 : 0); ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    const WeightType important = takes_more_bits(i, shape.layers) ? better : type;
    vector(layer + "attn_norm.weight", shape.embedding, 0.0F);
    if (i < shape.layers && !shape.attends(i)) {
      is_delta ? delta_rule(layer) : short_convolution(layer);
    } else {
      matrix(layer + "attn_q.weight", shape.embedding, is_delta ? 2 * width : width);
      matrix(layer + "attn_k.weight", shape.embedding, kv_width);
      matrix_of(important, layer + "attn_v.weight", shape.embedding, kv_width);
      last_of(type, layer + "attn_output.weight", width);
      if (!shape.attending.empty()) vector(layer + "attn_q_norm.weight", shape.head(), 0.0F);
      if (!shape.attending.empty()) vector(layer + "attn_k_norm.weight", shape.head(), 0.0F);
    }
    if (shape.biased) vector(layer + "attn_q.bias", shape.embedding, 0.1F);
    if (shape.biased) vector(layer + "attn_k.bias", kv_width, 0.1F);
    if (shape.biased) vector(layer + "attn_v.bias", kv_width, 0.1F);
    vector(layer + (is_delta ? "post_attention_norm.weight" : "ffn_norm.weight"), shape.embedding, 0.0F);
    matrix(layer + "ffn_gate.weight", shape.embedding, shape.feed_forward);
    matrix(layer + "ffn_up.weight", shape.embedding, shape.feed_forward);
    last_of(important, layer + "ffn_down.weight", shape.feed_forward);
    if (i < shape.layers) continue;
    matrix(layer + "nextn.eh_proj.weight", 2 * std::uint64_t{shape.embedding}, shape.embedding);
    tensors.back().unit = true;
    for (const char* norm : {"enorm", "hnorm", "shared_head_norm"}) vector(layer + "nextn." + norm + ".weight", shape.embedding, 0.0F);
  }
  vector(architecture == "lfm2" ? "token_embd_norm.weight" : "output_norm.weight", shape.embedding, 0.0F);
  if (!shape.tied) matrix_of(better, "output.weight", shape.embedding, shape.vocab);
  if (shape.rope_divisors) vector("rope_freqs.weight", shape.head() / 2, 0.0F);
  return tensors;
}

// Streams one GGUF v3 file; tensors follow each other at multiples of 32 bytes.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path) : out_(path, std::ios::binary) {}

  template <class T>
  void put(T value) {
    out_.write(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void text(const std::string& value) {
    put<std::uint64_t>(value.size());
    out_.write(value.data(), static_cast<std::streamsize>(value.size()));
  }
  void key(const std::string& name, std::uint32_t value) { text(name), put<std::uint32_t>(4), put(value), ++keys; }
  void key(const std::string& name, float value) { text(name), put<std::uint32_t>(6), put(value), ++keys; }
  void key(const std::string& name, const std::string& value) { text(name), put<std::uint32_t>(8), text(value), ++keys; }
  void key(const std::string& name, bool value) { text(name), put<std::uint32_t>(7), put(static_cast<std::uint8_t>(value)), ++keys; }
  template <class T>
  void key(const std::string& name, const std::vector<T>& values) {
    constexpr bool kIsText = std::is_same_v<T, std::string>;
    using Stored = std::conditional_t<std::is_same_v<T, double>, float, std::int32_t>;
    text(name), put<std::uint32_t>(9),
        put<std::uint32_t>(kIsText                     ? 8
                           : std::is_same_v<T, double> ? 6
                                                       : 5),
        put<std::uint64_t>(values.size());
    for (const auto& value : values) {
      if constexpr (kIsText) {
        text(value);
      } else {
        put(static_cast<Stored>(value));
      }
    }
    ++keys;
  }
  void pad() {
    while (out_.tellp() % 32 != 0) out_.put('\0');
  }
  void bytes(const std::vector<std::byte>& data) {
    out_.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  }
  void header(std::uint64_t tensors) {
    out_.seekp(0);
    out_.write("GGUF", 4);
    put<std::uint32_t>(3);
    put(tensors);
    put(keys);
  }
  void to_end() { out_.seekp(0, std::ios::end); }
  bool good() { return out_.flush().good(); }

  std::uint64_t keys = 0;

 private:
  std::ofstream out_;
};

// The reader widens numbers; llama.cpp's loader wants them narrow again: ids and types of 32 bits, scores as floats.
void write_key(FileWriter& file, const std::string& name, const braid::files::GgufValue& value) {
  if (const auto* array = std::get_if<braid::files::GgufArray>(&value)) {
    std::visit([&](const auto& items) { file.key(name, items); }, array->items);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    file.key(name, *text);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    file.key(name, *flag);
  } else if (const auto* number = std::get_if<std::uint64_t>(&value)) {
    file.key(name, static_cast<std::uint32_t>(*number));
  }
}

void write_tokenizer(FileWriter& file, const braid::files::GgufFile& source) {
  for (const auto& [name, value] : source.metadata())
    if (name.starts_with("tokenizer.")) write_key(file, name, value);
}

void write_keys(FileWriter& file, const std::string& name, const Shape& shape, const braid::files::GgufFile* tokenizer) {
  const std::string prefix = std::string(shape.architecture) + ".";
  file.key("general.architecture", std::string(shape.architecture));
  file.key("general.name", "random " + name);
  if (tokenizer != nullptr) {
    write_tokenizer(file, *tokenizer);
  } else {
    file.key("tokenizer.ggml.model", std::string("no_vocab"));
  }
  file.key(prefix + "vocab_size", shape.vocab);
  file.key(prefix + "context_length", shape.context);
  file.key(prefix + "block_count", shape.layers + (shape.agreeing_head ? 1 : 0));
  if (shape.agreeing_head) file.key(prefix + "nextn_predict_layers", std::uint32_t{1});
  file.key(prefix + "embedding_length", shape.embedding);
  file.key(prefix + "feed_forward_length", shape.feed_forward);
  file.key(prefix + "attention.head_count", shape.heads);
  if (shape.attending.empty() || shape.head_dim > 0) {
    file.key(prefix + "attention.head_count_kv", shape.kv_heads);
  } else {
    std::vector<std::int32_t> kv_heads;
    for (std::uint32_t i = 0; i < shape.layers; ++i) kv_heads.push_back(shape.attends(i) ? static_cast<std::int32_t>(shape.kv_heads) : 0);
    file.key(prefix + "attention.head_count_kv", kv_heads);
  }
  file.key(prefix + "attention.layer_norm_rms_epsilon", shape.epsilon);
  file.key(prefix + "rope.freq_base", shape.rope_base);
  file.key(prefix + "rope.dimension_count", shape.rotated > 0 ? shape.rotated : shape.head());
  if (prefix == "lfm2.") file.key(prefix + "shortconv.l_cache", kShortTaps);
  if (prefix != "qwen35.") return;
  for (const char* length : {"attention.key_length", "attention.value_length"}) file.key(prefix + length, shape.head());
  file.key(prefix + "rope.dimension_sections", std::vector<std::int32_t>{11, 11, 10, 0});
  file.key(prefix + "full_attention_interval", std::uint32_t{4});
  file.key(prefix + "ssm.conv_kernel", kDeltaTaps);
  file.key(prefix + "ssm.state_size", kDeltaDim);
  file.key(prefix + "ssm.group_count", kDeltaHeads);
  file.key(prefix + "ssm.time_step_rank", kDeltaHeads);
  file.key(prefix + "ssm.inner_size", kDeltaHeads * kDeltaDim);
}

std::uint64_t stored_bytes(const Tensor& tensor) {
  const std::uint64_t rows = tensor.shape.size() == 2 ? tensor.shape[1] : 1;
  return rows * braid::kernels::stored_row_bytes(*braid::kernels::weight_format(tensor.type), static_cast<std::int64_t>(tensor.shape[0]));
}

void write_model(FileWriter& file, const std::string& name, const Shape& shape, const std::string& type,
                 const braid::files::GgufFile* tokenizer) {
  const std::vector<Tensor> tensors = tensors_of(shape, type);
  file.header(tensors.size());
  write_keys(file, name, shape, tokenizer);
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    file.text(tensor.name);
    file.put(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::uint64_t size : tensor.shape) file.put(size);
    file.put(static_cast<std::uint32_t>(tensor.type));
    file.put(offset);
    offset += (stored_bytes(tensor) + 31) / 32 * 32;
  }
  file.pad();
  braid::perf::RandomValues random(1);
  std::vector<float> values;
  std::vector<std::byte> encoded;
  for (const Tensor& tensor : tensors) {
    values.resize(tensor.shape[0]);
    encoded.resize(braid::kernels::stored_row_bytes(*braid::kernels::weight_format(tensor.type), static_cast<std::int64_t>(values.size())));
    for (std::uint64_t row = 0; row < (tensor.shape.size() == 2 ? tensor.shape[1] : 1); ++row) {
      for (float& value : values) value = tensor.deviation == 0.0F ? tensor.constant : random.next(tensor.deviation);
      if (tensor.unit) std::ranges::fill(values, 0.0F), values[row] = 1.0F;
      braid::kernels::encode_row(tensor.type, values.data(), static_cast<std::int64_t>(values.size()), encoded.data());
      file.bytes(encoded);
    }
    file.pad();
  }
  file.header(tensors.size());  // the number of keys is known now
  file.to_end();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Writes a GGUF file with random weights in the shape of a real model"};
  std::string shape, type, path;
  app.add_option("shape", shape)->required()->check(CLI::IsMember(kShapes));
  app.add_option("type", type)->required()->check(CLI::IsMember(types()));
  app.add_option("file", path)->required();
  std::uint32_t context = 0;
  app.add_option("--context", context, "Context length in tokens; the real model's if not given");
  std::string tokenizer_path;
  app.add_option("--tokenizer", tokenizer_path, "GGUF file whose tokenizer is taken; its vocabulary must fit the shape's");
  bool agreeing_head = false;
  app.add_flag("--agreeing-head", agreeing_head, "With a head for tokens further on that is always right; of qwen3.5's shape");
  CLI11_PARSE(app, argc, argv);
  if (agreeing_head && kShapes.at(shape).head_dim == 0) {
    std::fprintf(stderr, "--agreeing-head: %s has no such head\n", shape.c_str());
    return 1;
  }
  std::optional<braid::files::GgufFile> tokenizer;
  if (!tokenizer_path.empty()) {
    auto opened = braid::files::GgufFile::open(tokenizer_path);
    if (!opened) {
      std::fprintf(stderr, "%s\n", opened.error().message.c_str());
      return 1;
    }
    tokenizer.emplace(std::move(*opened));
  }
  Shape wanted = kShapes.at(shape);
  if (context > 0) wanted.context = context;
  wanted.agreeing_head = agreeing_head;
  FileWriter file(path);
  write_model(file, shape, wanted, type, tokenizer ? &*tokenizer : nullptr);
  if (file.good()) return 0;
  std::fprintf(stderr, "%s: cannot write: %s\n", path.c_str(), std::strerror(errno));
  return 1;
}
