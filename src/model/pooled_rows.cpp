// Vectors of sequences, and what heads make of them.
#include "model/language_model.h"
#include "model/require.h"

#include <algorithm>
#include <span>
#include <utility>

namespace braid::model {

// The residual stream of what is picked before the last layer, for those who want that.
void LanguageModel::read_last_inputs() {
  for (std::size_t i = 0; i < picked_.size(); ++i) {
    if (picked_[i].scored != kTapped) continue;
    last_inputs_.resize(picked_.size() * hidden_.size());
    std::copy_n(space_.residual[pass_.picked[i]], hidden_.size(), last_inputs_.data() + i * hidden_.size());
  }
}

void LanguageModel::pool(std::size_t picked, const step::StepResult& result) {
  Pool& pool = pools_[result.rows[picked_[picked].row].slot];
  require(pool.expects(static_cast<std::int32_t>(picked_[picked].position) - 1), "a mean lacks positions");
  if (picked_[picked].scored == kTapped) {
    require(options_.passes == nullptr, "what the last layer reads is elsewhere");
    return pool.add(std::span(last_inputs_).subspan(picked * hidden_.size(), hidden_.size()));
  }
  if (options_.passes != nullptr) {
    options_.passes->hidden(static_cast<std::int64_t>(picked), hidden_);
  } else {
    decoder_->transformer.hidden(static_cast<std::int64_t>(picked), space_, hidden_.data());
  }
  pool.add(hidden_);
}

// An adapter's own, where it has one.
const ClassHead& LanguageModel::head_of(const step::StepRow& row) const {
  const AdapterSet* const set = adapters_.find(row.adapter);
  const ClassHead* const own = set != nullptr && !set->parts.empty() ? &set->parts.front().adapter->head : nullptr;
  return own != nullptr && own->classes() > 0 ? *own : decoder_of(row).head;
}

void LanguageModel::report_vector(const step::StepRow& row, step::RowResult& row_result, step::StepResult& result) const {
  if (row.output != step::RowOutput::kVector) return;
  std::vector<float> vector = pools_[row.slot].vector();
  if (vector.empty()) return;
  if (outputs_[row.slot] == PooledOutput::kScores) {
    const ClassHead& head = head_of(row);
    const auto classes = static_cast<std::size_t>(head.classes());
    const std::size_t tokens = vector.size() / hidden_.size();
    std::vector<float> scores(tokens * classes);
    for (std::size_t i = 0; i < tokens; ++i)
      head.apply(std::span(vector).subspan(i * hidden_.size(), hidden_.size()), std::span(scores).subspan(i * classes, classes));
    vector = std::move(scores);
  }
  row_result.vector_begin = static_cast<std::uint32_t>(result.vectors.size());
  row_result.vector_count = static_cast<std::uint32_t>(vector.size());
  result.vectors.insert(result.vectors.end(), vector.begin(), vector.end());
}

}  // namespace braid::model
