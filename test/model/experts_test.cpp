// What a row gets of its experts does not depend on who else chose them.
#include "model/experts.h"

#include "model/expert_use.h"
#include "model/families/families.h"
#include "model/forward_harness.h"
#include "model/mixture_model.h"

#include <cstring>

namespace braid::model::test {
namespace {

constexpr std::int64_t kWidth = MixtureModel::kWidth;

// Runs the experts of one layer on rows whose router scores are what the test says: its router reads the first inputs.
class ExpertsHarness {
 public:
  ExpertsHarness(const files::GgufFile& file, const kernels::KernelTable& table, int threads)
      : team_(threads), model_(describe_model(file).value()), weights_(load_weights(file, model_, 64, table, team_, {}).value()),
        products_(table, team_), experts_(table, team_, products_),
        space_(Workspace::create(model_, weights_, table, {.rows = 64, .members = threads}).value()) {
    std::vector<float> identity(static_cast<std::size_t>(kWidth * router().experts()), 0.0F);
    for (std::int64_t i = 0; i < router().experts(); ++i) identity[static_cast<std::size_t>(i * kWidth + i)] = 1.0F;
    kernels::PackedMatrix& matrix = weights_.layers.front().experts.router.matrix;
    matrix.type = kernels::WeightType::kF32;
    packed_.resize(table.packed_bytes(matrix.type, matrix.outputs, matrix.inputs) + 64);
    auto* at = packed_.data() + (64 - reinterpret_cast<std::uintptr_t>(packed_.data()) % 64) % 64;
    table.pack(matrix.type, reinterpret_cast<const std::byte*>(identity.data()), matrix.outputs, matrix.inputs, at, 0, matrix.panels());
    matrix.data = at;
  }

  const RouterShape& router() const { return model_.layers.front().experts->router; }

  std::vector<std::vector<float>> run(const std::vector<std::vector<float>>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      std::ranges::copy(rows[i], space_.normed[row]);
      std::fill_n(space_.branch[row], kWidth, 0.0F);
    }
    experts_.route(static_cast<std::int64_t>(rows.size()), *model_.layers.front().experts, weights_.layers.front().experts, space_);
    experts_.add(static_cast<std::int64_t>(rows.size()), *model_.layers.front().experts, weights_.layers.front().experts, space_);
    std::vector<std::vector<float>> out;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const float* row = space_.branch[static_cast<std::int64_t>(i)];
      out.emplace_back(row, row + kWidth);
    }
    return out;
  }

 private:
  kernels::ThreadTeam team_;
  const ModelShape model_;
  Weights weights_;
  const ProductRunner products_;
  const Experts experts_;
  Workspace space_;
  std::vector<std::byte> packed_;
};

// A row of noise that prefers `expert`, and then those after it.
std::vector<float> row_for(std::int32_t expert, std::int32_t experts, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  std::vector<float> row(static_cast<std::size_t>(kWidth));
  for (float& value : row) value = draw(random);
  for (std::int32_t i = 0; i < experts; ++i)
    row[static_cast<std::size_t>(i)] = 4.0F - 0.5F * static_cast<float>((i - expert + experts) % experts);
  return row;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) { return std::memcmp(a.data(), b.data(), a.size() * 4) == 0; }

class ExpertsOfAllTypes : public testing::TestWithParam<kernels::WeightType> {};

TEST_P(ExpertsOfAllTypes, GiveARowTheSameBitsWhoeverElseChoosesThem) {
  const files::GgufFile file = MixtureModel{.type = GetParam(), .layers = 1}.file();
  for (const auto* table : available_tables()) {
    ExpertsHarness alone(file, *table, 1);
    const std::int32_t experts = alone.router().experts();
    std::vector<std::vector<float>> same, different, lonely;
    const std::int32_t count = table->isa == kernels::Isa::kScalar ? 9 : 40;
    for (std::int32_t i = 0; i < count; ++i) {
      same.push_back(row_for(3, experts, static_cast<std::uint32_t>(i)));
      different.push_back(row_for(i % experts, experts, static_cast<std::uint32_t>(i)));
      lonely.push_back(row_for(i == 7 ? 6 : 0, experts, static_cast<std::uint32_t>(i)));  // nobody else takes 7
    }
    for (const int threads : {1, 3}) {
      ExpertsHarness together(file, *table, threads);
      for (const auto& rows : {same, different, lonely}) {
        const auto all = together.run(rows);
        for (std::size_t i = 0; i < rows.size(); ++i)
          ASSERT_TRUE(same_bits(all[i], alone.run({rows[i]}).front())) << table->name << ", " << threads << " threads, row " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ExpertsOfAllTypes,
                         testing::Values(kernels::WeightType::kF32, kernels::WeightType::kBF16, kernels::WeightType::kQ8_0,
                                         kernels::WeightType::kQ4_K, kernels::WeightType::kQ6_K, kernels::WeightType::kMXFP4),
                         [](const auto& suite) { return kernels::weight_format(suite.param)->name; });

// How many rows each expert gets changes from step to step, in one workspace.
TEST(Experts, LoadsThatChangeBetweenStepsLeaveARowsBits) {
  const files::GgufFile file = MixtureModel{.type = kernels::WeightType::kQ4_K, .layers = 1}.file();
  const auto& table = kernels::best_kernel_table();
  ExpertsHarness alone(file, table, 1);
  ExpertsHarness together(file, table, 2);
  const std::int32_t experts = alone.router().experts();
  std::mt19937 random(3);
  for (int step = 0; step < 12; ++step) {
    const auto favourite = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(experts));
    const auto others = static_cast<std::uint32_t>(step % 4);  // of four rows so many go elsewhere
    std::vector<std::vector<float>> rows(1 + random() % 48);
    for (std::vector<float>& row : rows) {
      const auto draw = static_cast<std::uint32_t>(random());
      const auto elsewhere = static_cast<std::int32_t>(draw / 4 % static_cast<std::uint32_t>(experts));
      row = row_for(draw % 4 < others ? elsewhere : favourite, experts, draw);
    }
    const auto all = together.run(rows);
    for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_TRUE(same_bits(all[i], alone.run({rows[i]}).front())) << step << ", row " << i;
  }
}

TEST(Experts, OfOlderFilesAreTheSame) {
  const auto logits_of = [](bool apart, bool tells_width) {
    const MixtureModel model{.type = kernels::WeightType::kQ8_0, .apart = apart, .tells_width = tells_width};
    return ForwardHarness(model.file(), kernels::best_kernel_table()).logits({5, 9, 100, 7, 33});
  };
  const std::vector<float> expected = logits_of(false, true);
  EXPECT_TRUE(same_bits(logits_of(true, true), expected)) << "each in a tensor of its own";
  for (const bool apart : {false, true}) EXPECT_TRUE(same_bits(logits_of(apart, false), expected)) << "no key tells their width";
}

TEST(Experts, TellWhatATokenReads) {
  for (const bool apart : {false, true}) {
    const files::GgufFile file = MixtureModel{.type = kernels::WeightType::kQ4_K, .experts = 16, .apart = apart}.file();
    const std::vector<ExpertUse> uses = expert_use(describe_model(file).value(), file);
    ASSERT_EQ(uses.size(), 1U);
    EXPECT_EQ(uses[0].layers, 2);
    EXPECT_EQ(uses[0].experts, 16);
    EXPECT_EQ(uses[0].chosen, 3);
    EXPECT_EQ(uses[0].types, "Q4_K");
    constexpr std::uint64_t kNetwork = 3 * 256 * 144;  // three matrices of 256 rows, 144 bytes each
    EXPECT_EQ(uses[0].expert_bytes, kNetwork);
    EXPECT_EQ(uses[0].read_bytes(), 4 * kNetwork) << "three, and the one of all rows";
    EXPECT_EQ(uses[0].all_bytes(), 17 * kNetwork);
  }
}

TEST(Experts, ARowWithoutNumbersSpoilsNoOther) {
  const files::GgufFile file = MixtureModel{.layers = 1}.file();
  ExpertsHarness harness(file, kernels::best_kernel_table(), 2);
  const std::int32_t experts = harness.router().experts();
  std::vector<std::vector<float>> rows(5, row_for(2, experts, 1));
  const std::vector<float> sound = harness.run(rows).front();
  rows[3][100] = std::numeric_limits<float>::quiet_NaN();
  const auto out = harness.run(rows);
  EXPECT_TRUE(same_bits(out[0], sound));
  EXPECT_TRUE(same_bits(out[4], sound));
  EXPECT_TRUE(std::ranges::all_of(out[3], [](float value) { return std::isnan(value); }));
}

}  // namespace
}  // namespace braid::model::test
