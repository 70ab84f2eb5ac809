// What a step takes, by what it is made of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace braid::sched {

// What a step was made of. Attention reads the context of a row once, however many tokens it has, and each of these meets it.
struct StepShape {
  std::int32_t decode_rows = 0;
  std::int32_t prefill_tokens = 0;
  double decode_read = 0.0;   // positions before all decode rows
  double prefill_read = 0.0;  // and before all slices
  double prefill_met = 0.0;   // sum of the positions before each token of slices

  // A row that verifies drafted tokens counts as one for each of them, but reads its context once.
  void add_decode(std::int32_t position, std::int32_t drafts = 0) {
    decode_rows += 1 + drafts;
    decode_read += position;
  }
  void add_prefill(std::int32_t position, std::int32_t tokens) {
    prefill_tokens += tokens;
    prefill_read += position;
    prefill_met += tokens * (position + 0.5 * tokens);
  }
};

// Learns seconds = step + row * decode_rows + token * prefill_tokens + what reading and meeting contexts adds, from the steps that come
// back: a Kalman filter whose coefficients drift, mostly together, as when other programs take the machine's time (Harvey, "Forecasting,
// Structural Time Series Models and the Kalman Filter", 1989, section 3). No clock of its own.
class StepCost {
 public:
  // Whether a step with prefill has been seen. Until then the rest knows nothing.
  bool is_known() const { return is_known_; }

  void observe(const StepShape& shape, double seconds);

  double decode_seconds(const StepShape& shape) const;   // of its decode rows, the step itself included
  double prefill_seconds(const StepShape& shape) const;  // what its prefill adds to that
  double reading_seconds(const StepShape& shape) const;  // the part of that which its contexts take, however few its tokens are
  // How far a step's time may well be from these two together: a standard deviation.
  double doubt_seconds(const StepShape& shape) const;

 private:
  enum Term : std::size_t { kStep, kRow, kDecodeRead, kToken, kPrefillRead, kPrefillMet, kTerms };
  using Terms = std::array<double, kTerms>;

  static Terms terms_of(const StepShape& shape);
  void begin(const Terms& x, double seconds);
  void drift();
  void bound();
  double variance(const Terms& x) const;

  bool is_known_ = false;
  bool was_outlier_ = false;  // the last step
  Terms cost_{};
  std::array<Terms, kTerms> covariance_{};
  Terms spread_{};               // the most that is ever assumed of a coefficient's deviation
  double relative_noise_ = 0.0;  // of a step's time, squared
};

}  // namespace braid::sched
