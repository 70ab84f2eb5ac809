// The last layer of a Llama-like decoder with LoRA beside its matrices, up to a head's number for a text, and the derivatives of that.
//
// Only the last token's row leaves the layer. So keys are computed once for a text, where LoRA is not beside them, and so are values but for
// what LoRA adds to them: sum p (v + s B A x) is computed as sum p v + s B (sum p A x). Everything behind attention is about one row.
#pragma once

#include "braid/result.h"
#include "braid/tunable_layer.h"
#include "kernels/kernel_table.h"
#include "model/adapters/read_adapter.h"
#include "model/decoder.h"
#include "model/training/frozen_layer.h"
#include "model/training/pieces.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {

// One that LoRA may be beside, and where in the model's own code and in the parameters that is.
struct TunedModule {
  std::string name;                 // "model.layers.1.self_attn.q_proj"
  bool is_tuned = false;            // otherwise nothing of the below holds
  std::vector<std::int32_t> order;  // of the module's rows those of the file, in its order; empty: they lie alike
  std::size_t down = 0;             // first parameter of A [rank, inputs]
  std::size_t up = 0;               // of B [outputs, rank]
};

class TunedLayer final : public TunableLayer {
 public:
  enum Module : std::uint8_t { kQuery, kKey, kValue, kOutput, kGate, kUp, kDown, kModules };
  using Modules = std::array<TunedModule, kModules>;

  TunedLayer(FrozenLayer layer, LoraShape lora, Modules modules);
  TunedLayer(const TunedLayer&) = delete;  // its pieces refer to it
  TunedLayer& operator=(const TunedLayer&) = delete;

  std::size_t parameter_count() const override { return head_ + static_cast<std::size_t>(layer_.width) + 1; }
  std::vector<float> first_parameters(std::uint64_t seed) const override;
  bool has_own_head() const override { return !layer_.head.empty(); }
  std::int32_t layer() const override { return layer_.index; }
  std::uint64_t bytes() const override { return layer_.bytes(); }
  std::uint64_t text_bytes(std::size_t tokens) const override;
  std::uint64_t work_bytes(std::size_t tokens) const override;
  void begin_text(std::vector<float> inputs) override;
  void begin_score(std::size_t text, std::span<const float> parameters) override;
  void begin_slope(double factor, std::span<double> gradient) override;
  std::size_t advance(std::size_t work) override { return running_ != nullptr ? running_->advance(work) : 0; }
  bool is_over() const override { return running_ == nullptr || running_->is_over(); }
  double score() const override { return score_; }
  std::vector<std::pair<std::string, Tensor>> tensors(std::span<const float> parameters) const override;

 private:
  using Row = std::vector<double>;

  // What stays of a text, whatever the parameters are.
  struct Text {
    std::int64_t tokens = 0;
    std::vector<float> inputs;        // [tokens, width], behind the norm; without LoRA beside keys or values the last one alone
    std::vector<float> keys, values;  // [tokens, kv width]; keys with LoRA beside them as they are before norm and rotation
    std::vector<float> query;         // [query width], of the last token, before norm and rotation
    std::vector<float> residual;      // [width], of the last token
    const float* last(std::int64_t width) const { return inputs.data() + static_cast<std::int64_t>(inputs.size()) - width; }
  };
  // y = W x + s B mid, where mid = A x
  struct Linear {
    const FrozenLinear& base;
    const TunedModule& module;
    Row& x;
    Row& y;
    Row& x_slope;
    Row& y_slope;
    Row mid = {};
  };

  std::array<const FrozenLinear*, kModules> bases() const {
    return {&layer_.query, &layer_.key, &layer_.value, &layer_.output, &layer_.gate, &layer_.up, &layer_.down};
  }
  void place_parameters();
  void plan_text();
  void plan_score();
  void plan_slope();
  void add_product(Linear& linear);
  void add_lora(Linear& linear);
  void add_product_slope(Linear& linear);
  void add_lora_slope(Linear& linear);

  void normalise_inputs(std::int64_t begin, std::int64_t end);
  void project(const FrozenLinear& linear, std::int64_t token, float* out) const;
  void finish_keys(std::int64_t begin, std::int64_t end);
  void turn_query();
  void adapt_keys(std::int64_t begin, std::int64_t end);
  double times_key(std::int64_t token, std::int64_t first, const double* row) const;
  void lower_values(std::int64_t begin, std::int64_t end);
  void attend(std::int64_t begin, std::int64_t end);
  void end_attention();
  void activate();
  void end_score();
  void begin_slopes();
  void activate_slope();
  void end_attention_slope();
  void attend_slope(std::int64_t begin, std::int64_t end);
  void value_slope(std::int64_t begin, std::int64_t end);
  void key_slope(std::int64_t begin, std::int64_t end);
  void turn_query_slope();

  // The rotation of a position; empty: there is none.
  struct Turn {
    std::vector<float> cos, sin;
  };
  Turn turn_of(std::int64_t position) const;
  void rotate(double* head, const Turn& turn, bool back) const;
  bool needs_inputs() const { return modules_[kKey].is_tuned || modules_[kValue].is_tuned; }
  std::int64_t first_seen() const;
  std::int64_t kv_width() const { return layer_.key.outputs; }

  const FrozenLayer layer_;
  const LoraShape lora_;
  Modules modules_;
  const double scale_;  // of what LoRA adds
  const std::size_t rank_;
  std::size_t head_ = 0;  // its first parameter

  std::vector<Text> texts_;
  std::vector<float> given_;  // begin_text()'s, until it is over
  Text* text_ = nullptr;      // at hand
  std::span<const float> parameters_;
  std::span<double> gradient_;
  double factor_ = 0.0;
  double score_ = 0.0;

  // Of the text at hand, and their derivatives.
  Row input_, query_, turned_, attended_, attention_, stream_, hidden_, gate_, up_, activated_, down_, end_, final_;
  Row input_slope_, query_slope_, turned_slope_, attended_slope_, attention_slope_, stream_slope_, hidden_slope_, gate_slope_, up_slope_,
      activated_slope_, down_slope_, end_slope_;
  Row shares_;                   // [heads, tokens]: of attention
  Row value_mid_, value_slope_;  // [tokens, rank]: A x beside the values
  Row shared_mid_;               // [heads, rank]: its sum, by these shares
  Row key_mid_;                  // [tokens, rank]: A x beside the keys
  Row plain_keys_, keys_;        // [tokens, kv width]: with LoRA, before norm and rotation and behind them
  Row key_slope_;                // of keys_
  struct Linears {
    Linear query, output, gate, up, down;
  };
  Linears linears_;
  Pieces of_text_, of_score_, of_slope_;
  Pieces* running_ = nullptr;
};

// The last layer of a base with LoRA beside it. Any thread. kUnsupported: it is no such layer, or a module is none of those that can be tuned, or it
// would take more bytes.
Result<std::shared_ptr<TunableLayer>> tune_last_layer(const AdaptedBase& base, const Decoder& decoder, const kernels::KernelTable& table,
                                                      const LoraShape& lora, std::uint64_t most_bytes = ~std::uint64_t{0});

}  // namespace braid::model
