#include "net/training/fitting.h"

#include "net/training/adapter_folder.h"
#include "net/training/lora_fit.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace braid::net::training {
namespace {

constexpr std::size_t kWorkOfPiece = 4'000'000;  // multiplications on the codec worker, where requests of others wait meanwhile

class HeadFitting final : public Fitting {
 public:
  HeadFitting(JobRequest& request, std::string folder)
      : examples_(std::move(request.examples)), options_(std::move(request.fit)), resumes_(request.resumes),
        checkpoint_every_(request.checkpoint_every), folder_(std::move(folder)) {}

  std::pair<Pooling, PooledOutput> reads() const override { return {Pooling::kLast, PooledOutput::kVector}; }
  void take(std::vector<float> vector) override { vectors_.push_back(std::move(vector)); }

  Result<void> begin() override {
    if (resumes_) {
      auto head = read_head(folder_, vectors_.front().size());
      if (!head) return head.error();
      options_.begin = std::move(*head);
    }
    fit_.emplace(std::move(vectors_), std::move(examples_), std::move(options_));
    return {};
  }

  bool advance() override {
    if (!fit_) return true;
    const std::size_t work = std::max<std::size_t>(1, fit_->epoch_work());
    for (std::size_t done = 0; done == 0 || (done + work <= kWorkOfPiece && !is_checkpoint(checkpoint_every_)); done += work)
      fit_->advance();
    return true;
  }

  std::int32_t epoch() const override { return fit_ ? fit_->epoch() : 0; }
  bool done() const override { return fit_ && fit_->done(); }
  FitFigures learnt() const override { return fit_->learnt(); }
  FitFigures held_out() const override { return fit_->held_out(); }
  Result<void> save() const override { return write_head(folder_, fit_->head()); }

 private:
  std::vector<Example> examples_;
  FitOptions options_;
  const bool resumes_;
  const std::int32_t checkpoint_every_;
  const std::string folder_;
  std::vector<std::vector<float>> vectors_;
  std::optional<HeadFit> fit_;
};

class LoraFitting final : public Fitting {
 public:
  LoraFitting(JobRequest& request, std::string folder)
      : layer_(std::move(request.layer)), examples_(std::move(request.examples)), options_(std::move(request.fit)),
        lora_(std::move(*request.lora)), resumes_(request.resumes), folder_(std::move(folder)) {}

  std::pair<Pooling, PooledOutput> reads() const override { return {Pooling::kEach, PooledOutput::kLastInputs}; }
  void take(std::vector<float> inputs) override { layer_->begin_text(std::move(inputs)); }

  Result<void> begin() override {
    std::optional<LoraState> state;
    if (resumes_) {
      auto read = read_lora(folder_, lora_, layer_->parameter_count());
      if (!read) return read.error();
      if (read->epoch >= options_.epochs)
        return invalid_argument(
            fmt::format("the checkpoint is of epoch {}, and 'epochs' is {}: ask for more", read->epoch, options_.epochs), "epochs");
      state = std::move(*read);
    }
    fit_.emplace(layer_, std::move(examples_), std::move(options_), lora_, std::move(state));
    return {};
  }

  bool advance() override {
    if (fit_) return fit_->advance(kWorkOfPiece);
    layer_->advance(kWorkOfPiece);
    return layer_->is_over();
  }

  std::int32_t epoch() const override { return fit_ ? fit_->epoch() : 0; }
  bool done() const override { return fit_ && fit_->done(); }
  FitFigures learnt() const override { return fit_->learnt(); }
  FitFigures held_out() const override { return fit_->held_out(); }
  Result<void> save() const override { return write_lora(folder_, lora_, *layer_, fit_->state()); }

 private:
  const std::shared_ptr<TunableLayer> layer_;
  std::vector<Example> examples_;
  FitOptions options_;
  const LoraOptions lora_;
  const bool resumes_;
  const std::string folder_;
  std::optional<LoraFit> fit_;
};

}  // namespace

std::unique_ptr<Fitting> make_fitting(JobRequest& request, std::string folder) {
  if (request.lora) return std::make_unique<LoraFitting>(request, std::move(folder));
  return std::make_unique<HeadFitting>(request, std::move(folder));
}

}  // namespace braid::net::training
