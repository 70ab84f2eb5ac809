#include "model/images/resampler.h"

#include "model/deterministic_math.h"
#include "model/encoders/encoder_layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid::model {
namespace {

float* sized_to(std::vector<float>& values, std::int64_t count) {
  if (values.size() < static_cast<std::size_t>(count)) values.resize(static_cast<std::size_t>(count));
  return values.data();
}

EncoderShape shape_of_heads(const ResamplerShape& shape) {
  EncoderShape heads;
  heads.width = shape.width;
  heads.heads = heads.kv_heads = shape.heads;
  heads.head_dim = static_cast<std::int32_t>(shape.width / shape.heads);
  return heads;
}

// Of places 0, 1, 2, ...: sines, then cosines, of `width` / 2 frequencies each.
void append_waves(std::vector<float>& out, std::int32_t count, std::int64_t width) {
  constexpr double kBase = 10'000.0;
  const std::int64_t frequencies = width / 2;
  for (std::int32_t place = 0; place < count; ++place) {
    std::vector<float> cosines;
    for (std::int64_t i = 0; i < frequencies; ++i) {
      const double frequency = fixed_exp(-static_cast<double>(i) / static_cast<double>(frequencies) * fixed_log(kBase));
      const SinCos at = fixed_sin_cos(place * frequency);
      out.push_back(static_cast<float>(at.sin));
      cosines.push_back(static_cast<float>(at.cos));
    }
    out.insert(out.end(), cosines.begin(), cosines.end());
  }
}

}  // namespace

ResamplerPass::ResamplerPass(const ResamplerShape& shape, const ResamplerWeights& weights, const std::vector<PatchGrid>& grids,
                             const kernels::KernelTable& table, kernels::ThreadTeam& team)
    : shape_(shape), weights_(weights), grids_(grids), table_(table), team_(team), products_(table, team), heads_(shape_of_heads(shape)),
      queries_(static_cast<std::size_t>(shape.count * shape.width)), mixed_(queries_.size()) {
  vectors_.reserve(grids.size() * queries_.size());
}

bool ResamplerPass::advance(const float* rows) {
  const std::int64_t square = shape_.width * shape_.width;
  const auto part = [&](std::int64_t count, std::int64_t work) { return std::min(count, next_ + rows_of_part(work)); };
  const auto patches = static_cast<std::int64_t>(grid().order.size());
  switch (stage_) {
    case Stage::kAsk: {
      const std::int64_t end = part(shape_.count, square);
      ask(next_, end);
      if (finish(end, shape_.count)) begin_tile();
      break;
    }
    case Stage::kShow: {
      const std::int64_t end = part(patches, shape_.joined.inputs * shape_.width + 2 * square);
      show(rows + (grid().begin + next_) * shape_.inputs, next_, end);
      if (finish(end, patches)) stage_ = Stage::kAttend;
      break;
    }
    case Stage::kAttend: {
      const std::int64_t end = part(shape_.count, 2 * patches * shape_.width);
      attention_->attend(layer_, 0, static_cast<std::int32_t>(next_), static_cast<std::int32_t>(end), queries_.data(), mixed_.data());
      if (finish(end, shape_.count)) stage_ = Stage::kTell;
      break;
    }
    case Stage::kTell: {
      const std::int64_t end = part(shape_.count, 2 * square);
      tell(next_, end);
      if (!finish(end, shape_.count)) break;
      if (tile_ + 1 < grids_.size()) {
        ++tile_;
        begin_tile();
      } else {
        stage_ = Stage::kDone;
      }
      break;
    }
    case Stage::kDone:
      break;
  }
  return stage_ != Stage::kDone;
}

// Whether what the stage goes through is over; the next one begins at its first.
bool ResamplerPass::finish(std::int64_t end, std::int64_t count) {
  next_ = end < count ? end : 0;
  return end == count;
}

void ResamplerPass::begin_tile() {
  stage_ = Stage::kShow;
  patches_ = {TextRows{0, static_cast<std::int32_t>(grid().order.size())}};
  attention_.emplace(heads_, static_cast<float>(1.0 / std::sqrt(static_cast<double>(heads_.head_dim))), std::span<const float>(), table_,
                     team_, patches_);
  places_.clear();
  append_waves(places_, grid().columns, shape_.width / 2);
  append_waves(places_, grid().rows, shape_.width / 2);
}

void ResamplerPass::normalise(const EncoderNormWeights& norm, float* x, std::int64_t rows) const {
  normalise_rows(norm, shape_.epsilon, x, rows, shape_.width, x, table_, team_);
}

void ResamplerPass::ask(std::int64_t begin, std::int64_t end) {
  const std::int64_t width = shape_.width;
  float* const asked = sized_to(seen_, (end - begin) * width);
  std::copy_n(weights_.queries.data() + begin * width, (end - begin) * width, asked);
  normalise(weights_.query_norm, asked, end - begin);
  products_.multiply(weights_.query, asked, end - begin, queries_.data() + begin * width);
}

// Patches [begin, end) of the tile, the first of which `rows` begin with.
void ResamplerPass::show(const float* rows, std::int64_t begin, std::int64_t end) {
  const std::int64_t count = end - begin;
  const std::int64_t width = shape_.width;
  float* const seen = sized_to(seen_, count * width);
  if (shape_.joined) {
    products_.multiply(weights_.joined, rows, count, seen);
  } else {
    std::copy_n(rows, count * width, seen);
  }
  normalise(weights_.patch_norm, seen, count);
  float* const values = sized_to(values_, count * width);
  products_.multiply(weights_.value, seen, count, values);
  add_places(seen, begin, end);
  float* const keys = sized_to(keys_, count * width);
  products_.multiply(weights_.key, seen, count, keys);
  for (std::int64_t i = 0; i < count; ++i) attention_->store(0, static_cast<std::int32_t>(begin + i), keys + i * width, values + i * width);
}

void ResamplerPass::add_places(float* keys, std::int64_t begin, std::int64_t end) const {
  const std::int64_t half = shape_.width / 2;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int32_t patch = grid().order[static_cast<std::size_t>(i)];
    float* const key = keys + (i - begin) * shape_.width;
    table_.add(key, places_.data() + patch % grid().columns * half, half);
    table_.add(key + half, places_.data() + (grid().columns + patch / grid().columns) * half, half);
  }
}

void ResamplerPass::tell(std::int64_t begin, std::int64_t end) {
  const std::int64_t count = end - begin;
  const std::int64_t width = shape_.width;
  float* const told = sized_to(told_, count * width);
  products_.multiply(weights_.out, mixed_.data() + begin * width, count, told);
  normalise(weights_.after, told, count);
  const std::size_t before = vectors_.size();
  vectors_.resize(before + static_cast<std::size_t>(count * width));
  products_.multiply(weights_.projection, told, count, vectors_.data() + before);
}

}  // namespace braid::model
