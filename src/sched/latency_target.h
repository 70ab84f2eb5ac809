// How many rows and how much prefill a step may have so that it takes about as long as it is to take.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braid::sched {

// Learns what a step costs and what each row adds, by least squares over the decode steps that come back, older ones counting less. No
// clock of its own. Rows are bounded at admission: who decodes goes on, so a bound that falls is reached as answers end.
class LatencyTarget {
 public:
  // `seconds`: of a step, which is what lies between two tokens of an answer.
  explicit LatencyTarget(double seconds) : aim_(seconds) {}

  // Sequences that may run at once.
  std::size_t most_rows() const;
  // What prefill may add to a step with so many decode rows; a little always, so that it moves on.
  double slice_seconds(std::int32_t decode_rows) const;

  // Of a step that only decodes; 0 while nothing was measured.
  double decode_seconds(std::int32_t rows) const;

  // A step without prefill.
  void observe(std::int32_t decode_rows, double seconds);

 private:
  static constexpr double kMemory = 0.95;  // weight of what was known when a sample comes
  static constexpr double kLeast = 0.1;    // of the aim is left for prefill

  struct Cost {
    double step = 0.0;
    double row = 0.0;
  };
  Cost cost() const;

  double aim_;
  double weight_ = 0.0;  // sums over samples: of weights, rows, seconds, rows squared, rows times seconds
  double rows_ = 0.0;
  double seconds_ = 0.0;
  double rows_rows_ = 0.0;
  double rows_seconds_ = 0.0;
};

}  // namespace braid::sched
