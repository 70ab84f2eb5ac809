#include "images/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <fmt/format.h>
#include <numbers>
#include <utility>
#include <vector>

namespace braid::images {
namespace {

constexpr std::int64_t kMostPixels = 50'000'000;

double bilinear(double x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double sinc(double x) { return x == 0 ? 1 : std::sin(x * std::numbers::pi) / (x * std::numbers::pi); }
double lanczos(double x) { return x > -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

struct KernelShape {
  double (*value)(double) = nullptr;
  double support = 0;  // beyond it all is zero
};

KernelShape shape_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::kBilinear:
      return {bilinear, 1};
    case Kernel::kBicubic:
    case Kernel::kPillowBicubic:
      return {bicubic, 2};
    case Kernel::kLanczos:
      return {lanczos, 3};
  }
  return {};
}

// Of a resized line, the pixels that are wanted.
struct Wanted {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  bool has(std::int32_t i) const { return i >= begin && i < end; }
};

// What each pixel that is wanted of a resized line is made of.
struct Weights {
  struct Span {
    std::int32_t first = 0;
    std::int32_t count = 0;
  };
  std::vector<Span> spans;
  std::vector<std::int32_t> values;  // of each span `most`
  std::size_t most = 0;
  int precision = 0;  // bits behind the point

  const std::int32_t* of(std::size_t i) const { return values.data() + i * most; }
};

int precision_for(Kernel kernel, double largest) {
  if (kernel == Kernel::kLanczos || kernel == Kernel::kPillowBicubic) return 22;
  int precision = 0;
  while (precision < 22 && static_cast<int>(0.5 + largest * (1 << (precision + 1))) < 1 << 15) ++precision;
  return precision;
}

// The largest weight of all pixels decides how those that are wanted are rounded.
Weights make_weights(std::int32_t from, std::int32_t to, Kernel kernel, Wanted wanted) {
  const KernelShape shape = shape_of(kernel);
  const double scale = static_cast<double>(from) / to;
  const double stretch = std::max(scale, 1.0);
  const double support = shape.support * stretch;
  Weights weights;
  weights.most = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  std::vector<double> exact;
  exact.reserve(static_cast<std::size_t>(wanted.end - wanted.begin) * weights.most);
  std::vector<double> own(weights.most);
  double largest = 0;
  for (std::int32_t i = 0; i < to; ++i) {
    const double centre = scale * (static_cast<double>(i) + 0.5);
    const auto first = std::max(static_cast<std::int32_t>(centre - support + 0.5), 0);
    const auto end = std::min(static_cast<std::int32_t>(centre + support + 0.5), from);
    const std::int32_t count = std::clamp(end - first, 0, static_cast<std::int32_t>(weights.most));
    std::ranges::fill(own, 0.0);
    double total = 0;
    for (std::int32_t j = 0; j < count; ++j)
      total += own[static_cast<std::size_t>(j)] = shape.value((j + first - centre + 0.5) * (1.0 / stretch));
    for (double& value : own)
      if (total != 0) largest = std::max(largest, value /= total);
    if (!wanted.has(i)) continue;
    weights.spans.push_back({first, count});
    exact.insert(exact.end(), own.begin(), own.end());
  }
  weights.precision = precision_for(kernel, largest);
  const double unit = 1 << weights.precision;
  weights.values.reserve(exact.size());
  for (const double value : exact) weights.values.push_back(static_cast<std::int32_t>(value * unit + (value < 0 ? -0.5 : 0.5)));
  return weights;
}

std::uint8_t rounded(std::int32_t sum, int precision) { return static_cast<std::uint8_t>(std::clamp(sum >> precision, 0, 255)); }

// A row in its new width.
std::vector<std::uint8_t> resized_row(const std::uint8_t* row, const Weights& weights) {
  std::vector<std::uint8_t> out(weights.spans.size() * 3);
  for (std::size_t x = 0; x < weights.spans.size(); ++x) {
    const auto [first, count] = weights.spans[x];
    const std::int32_t* weight = weights.of(x);
    std::array<std::int32_t, 3> sums;
    sums.fill(1 << (weights.precision - 1));
    const std::uint8_t* from = row + std::ptrdiff_t{first} * 3;
    for (std::int32_t j = 0; j < count; ++j, from += 3)
      for (std::size_t c = 0; c < 3; ++c) sums[c] += weight[j] * from[c];
    for (std::size_t c = 0; c < 3; ++c) out[x * 3 + c] = rounded(sums[c], weights.precision);
  }
  return out;
}

// Rows are asked for from the top down. row_of(y): its pixels, which live up to the next one's.
template <class RowOf>
void resize_rows(const RowOf& row_of, const Weights& across, const Weights& down, Picture& out, std::int32_t top, std::int32_t left) {
  const std::size_t values = across.spans.size() * 3;
  std::vector<std::int32_t> sums(values);
  std::deque<std::vector<std::uint8_t>> rows;  // in their new width: those that the row below may need
  std::int32_t first_row = 0;                  // the index of the first of them
  for (std::size_t y = 0; y < down.spans.size(); ++y) {
    const auto [first, count] = down.spans[y];
    for (; first_row < first && !rows.empty(); ++first_row) rows.pop_front();
    first_row = std::max(first_row, first);
    while (first_row + static_cast<std::int32_t>(rows.size()) < first + count)
      rows.push_back(resized_row(row_of(first_row + static_cast<std::int32_t>(rows.size())), across));
    std::ranges::fill(sums, 1 << (down.precision - 1));
    for (std::int32_t j = 0; j < count; ++j) {
      const std::int32_t weight = down.of(y)[j];
      const std::vector<std::uint8_t>& row = rows[static_cast<std::size_t>(j)];
      for (std::size_t x = 0; x < values; ++x) sums[x] += weight * row[x];
    }
    std::uint8_t* to = out.row(top + static_cast<std::int32_t>(y)) + std::ptrdiff_t{left} * 3;
    for (std::size_t x = 0; x < values; ++x) to[x] = rounded(sums[x], down.precision);
  }
}

Result<void> check(const Picture& picture, Size size) {
  if (size.height < 1 || size.width < 1 || size.area() > kMostPixels)
    return invalid_argument(fmt::format("the image of {} × {} pixels is too long for this model, which would make {} × {} of it",
                                        picture.width, picture.height, size.width, size.height));
  return {};
}

Size within_square(Size size) {
  constexpr double kSquareSide = 7000.0;
  const double scale = std::min(1.0, kSquareSide / std::max(size.height, size.width));
  return {std::max(1, static_cast<std::int32_t>(size.height * scale)), std::max(1, static_cast<std::int32_t>(size.width * scale))};
}

}  // namespace

Result<Picture> resized(const Picture& picture, Size size, Kernel kernel) {
  if (size == picture.size()) return picture;
  return resized_part(picture, size, kernel, 0, 0, size);
}

Result<Picture> resized_part(const Picture& picture, Size size, Kernel kernel, std::int32_t top, std::int32_t left, Size part) {
  if (size == picture.size()) return cropped(picture, top, left, part);
  if (const Result<void> possible = check(picture, size); !possible) return possible.error();
  const Wanted rows{std::clamp(top, 0, size.height), std::clamp(top + part.height, 0, size.height)};
  const Wanted columns{std::clamp(left, 0, size.width), std::clamp(left + part.width, 0, size.width)};
  Picture out = Picture::empty(part.height, part.width);
  resize_rows([&](std::int32_t y) { return picture.row(y); }, make_weights(picture.width, size.width, kernel, columns),
              make_weights(picture.height, size.height, kernel, rows), out, rows.begin - top, columns.begin - left);
  return out;
}

Result<Picture> resized_on_square(const Picture& picture, const std::array<std::uint8_t, 3>& ground, Size size, Kernel kernel) {
  if (const Result<void> possible = check(picture, size); !possible) return possible.error();
  if (const Size bound = within_square(picture.size()); bound != picture.size()) {
    const Result<Picture> bounded = resized(picture, bound, kernel);
    return bounded ? resized_on_square(*bounded, ground, size, kernel) : bounded;
  }
  const std::int32_t side = std::max(picture.height, picture.width);
  const std::int32_t top = (side - picture.height) / 2;
  const std::int32_t left = (side - picture.width) / 2;
  Picture bar = Picture::empty(1, side);
  for (std::size_t i = 0; i < bar.values.size(); ++i) bar.values[i] = ground[i % 3];
  Picture line = bar;
  const auto row_of = [&](std::int32_t y) -> const std::uint8_t* {
    if (y < top || y >= top + picture.height) return bar.row(0);
    std::copy_n(picture.row(y - top), std::ptrdiff_t{3} * picture.width, line.row(0) + std::ptrdiff_t{3} * left);
    return line.row(0);
  };
  Picture out = Picture::empty(size.height, size.width);
  resize_rows(row_of, make_weights(side, size.width, kernel, {0, size.width}), make_weights(side, size.height, kernel, {0, size.height}),
              out, 0, 0);
  return out;
}

Size with_short_edge(Size size, std::int32_t edge) {
  const std::int32_t shorter = std::min(size.height, size.width);
  const auto longer = static_cast<std::int32_t>(std::int64_t{edge} * std::max(size.height, size.width) / shorter);
  return size.width <= size.height ? Size{longer, edge} : Size{edge, longer};
}

Picture cropped(const Picture& picture, std::int32_t top, std::int32_t left, Size size) {
  Picture out = Picture::empty(size.height, size.width);
  const std::int32_t begin = std::max(left, 0);
  const std::int32_t end = std::min(left + size.width, picture.width);
  for (std::int32_t y = 0; y < size.height && begin < end; ++y) {
    if (top + y < 0 || top + y >= picture.height) continue;
    const std::uint8_t* from = picture.row(top + y);
    std::copy(from + std::ptrdiff_t{begin} * 3, from + std::ptrdiff_t{end} * 3, out.row(y) + std::ptrdiff_t{begin - left} * 3);
  }
  return out;
}

}  // namespace braid::images
