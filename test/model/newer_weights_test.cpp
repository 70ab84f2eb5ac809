// Newer values for the tensors of a model: the same as if it had been loaded with them, or a sentence.
#include "kernels/select.h"
#include "kernels/thread_team.h"
#include "model/adapter_models.h"
#include "model/families/families.h"
#include "model/folder_models.h"
#include "model/language_model.h"
#include "model/loaded_tensors.h"
#include "model/step_driver.h"
#include "model/stored_values.h"
#include "support/folder.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace braid::model::test {
namespace {

using testing::HasSubstr;

// All values of some weights.
class Told final : public TensorSink {
 public:
  void begin(const std::string& name, std::vector<std::int64_t> shape) override {
    current_ = &all[name];
    shapes[name] = std::move(shape);
  }
  void add(std::span<const float> values) override { current_->insert(current_->end(), values.begin(), values.end()); }
  void end() override {}

  std::map<std::string, std::vector<float>> all;
  std::map<std::string, std::vector<std::int64_t>> shapes;

 private:
  std::vector<float>* current_ = nullptr;
};

std::map<std::string, std::vector<float>> told(const LanguageModel& model, const Weights& weights) {
  Told sink;
  model.tell_values(weights, sink);
  return sink.all;
}

std::unique_ptr<LanguageModel> load_one(const files::GgufFile& file) {
  return LanguageModel::load(file, kernels::best_kernel_table(), {.max_batch = 8, .end_tokens = {2}, .progress = {}}).value();
}

// Other values of the same size, which bf16 and f16 hold exactly if they hold the first ones.
adapting::Values doubled(adapting::Values values) {
  for (float& value : values.at) value *= 2.0F;
  return values;
}

Result<std::shared_ptr<const Weights>> newer(const LanguageModel& model, const LoadedTensors& loaded, std::vector<std::byte> file,
                                             bool partial) {
  const Result<NewerTensors> tensors = newer_tensors(loaded, files::owned_bytes(std::move(file), "newer"), partial);
  if (!tensors) return tensors.error();
  return model.newer_weights(*model.first()->weights, tensors->file);
}

// Loaded from a folder like that one with other values.
std::unique_ptr<LanguageModel> load_changed(const files::HfFolder& folder, const std::map<std::string, adapting::Values>& changed) {
  const braid::test::Folder work;
  const std::string path = work / "changed";
  std::filesystem::create_directories(path);
  adapting::Tensors given;
  for (const auto& [name, values] : changed) given.add(name, values);
  const std::vector<std::byte> file = given.file();
  const files::SafeTensors named = files::parse_safetensors(file).value();
  adapting::write_file(path + "/config.json", folder.config());
  adapting::write_file(path + "/model.safetensors", with_newer_values({{}, folder.tensors()}, named, true, "changed").value());
  return load_one(files::GgufFile::from_contents(read_folder(files::HfFolder::open(path).value()).value()));
}

class NewerWeightsOfFolders : public testing::TestWithParam<std::string> {};

TEST_P(NewerWeightsOfFolders, AreThoseThatALoadWouldGive) {
  const files::HfFolder folder = files::HfFolder::open(folder_path(GetParam())).value();
  const LoadedTensors loaded = LoadedTensors::of(folder).value();
  const auto model = load_one(open_folder_model(GetParam()));
  adapting::Tensors given;
  std::map<std::string, adapting::Values> changed;
  for (const auto& [name, tensor] : folder.tensors()) {
    if (!floats_of(tensor)) continue;
    changed[name] = doubled(adapting::values_of(tensor));
    given.add(name, changed[name]);
  }
  const auto all = newer(*model, loaded, given.file(), false);
  if (GetParam() == "apertus") {
    ASSERT_FALSE(all);
    EXPECT_THAT(all.error().message, HasSubstr("is a number of the model's shape, which cannot be replaced"));
    return;
  }
  if (!loaded.fault.empty()) {
    ASSERT_FALSE(all);
    EXPECT_THAT(all.error().message, HasSubstr("weights of quantised folders are not replaced"));
    return;
  }
  ASSERT_TRUE(all) << all.error().message;
  const auto other = load_changed(folder, changed);
  EXPECT_EQ(told(*model, **all), told(*other, *other->first()->weights));
  EXPECT_NE(told(*model, **all), told(*model, *model->first()->weights));
}

TEST(NewerWeightsOfRanks, KeepTheMemoryThatTheyShareWithOlderOnes) {
  const files::HfFolder folder = files::HfFolder::open(folder_path("mistral")).value();
  const LoadedTensors loaded = LoadedTensors::of(folder).value();
  const files::GgufFile file = open_folder_model("mistral");
  const ModelShape shape = describe_model(file).value();
  const kernels::KernelTable& table = kernels::best_kernel_table();
  kernels::ThreadTeam team(1);
  const std::string norm = "model.norm.weight";
  adapting::Tensors given;
  given.add(norm, doubled(adapting::values_of(folder.tensors().at(norm))));
  for (const std::int32_t rank : {0, 1}) {
    const Packing packing{.float_type = {}, .share = {.rank = rank, .ranks = 2}};
    const Weights first = load_weights(file, shape, shape.context_length, table, team, {}, packing).value();
    const NewerTensors tensors = newer_tensors(loaded, files::owned_bytes(given.file(), "newer"), true).value();
    const Weights newer = newer_weights(first, tensors.file, shape, shape.context_length, table, team, packing).value();
    EXPECT_NE(newer.output_norm.weight, first.output_norm.weight);
    EXPECT_EQ(newer.storage, first.storage) << rank;
  }
}

// What a family makes of several tensors together it may refuse to change in part, but never changes wrongly.
TEST_P(NewerWeightsOfFolders, OfOneTensorAreThoseThatALoadWouldGiveOrAreRefused) {
  const files::HfFolder folder = files::HfFolder::open(folder_path(GetParam())).value();
  const LoadedTensors loaded = LoadedTensors::of(folder).value();
  if (!loaded.fault.empty()) return;
  const auto model = load_one(open_folder_model(GetParam()));
  std::size_t taken = 0;
  std::size_t number = 0;
  for (const auto& [name, tensor] : folder.tensors()) {
    if (number++ % 3 != 0) continue;
    adapting::Tensors given;
    const std::map<std::string, adapting::Values> changed = {{name, doubled(adapting::values_of(tensor))}};
    given.add(name, changed.at(name));
    const auto some = newer(*model, loaded, given.file(), true);
    if (!some) continue;
    ++taken;
    const auto other = load_changed(folder, changed);
    EXPECT_EQ(told(*model, **some), told(*other, *other->first()->weights)) << name;
  }
  EXPECT_EQ(taken > 0, GetParam() != "apertus") << "whose activations have numbers of their own, without which it cannot be described";
}

INSTANTIATE_TEST_SUITE_P(Models, NewerWeightsOfFolders, testing::ValuesIn(folder_models()), folder_test_name);

files::GgufFile small_model() { return files::GgufFile::open(BRAID_SOURCE_DIR "/models/demo-draft-q8_0.gguf").value(); }

// The values of a file's tensors, rows first.
adapting::Tensors dequantised(const files::GgufFile& file) {
  adapting::Tensors tensors;
  for (const files::GgufTensor& tensor : file.tensors()) {
    adapting::Values values{{tensor.shape.rbegin(), tensor.shape.rend()}, {}};
    const std::int64_t columns = tensor.shape.front();
    std::int64_t rows = 1;
    for (std::size_t i = 1; i < tensor.shape.size(); ++i) rows *= tensor.shape[i];
    values.at.resize(static_cast<std::size_t>(rows * columns));
    const auto type = static_cast<kernels::WeightType>(tensor.type);
    kernels::dequantize_row(type, tensor.bytes.data(), rows * columns, values.at.data());
    tensors.add(tensor.name, values);
  }
  return tensors;
}

TEST(NewerWeights, OfTheSameValuesAreTheSameAndShareNothingThatIsReplaced) {
  const files::GgufFile file = small_model();
  const auto model = load_one(file);
  const auto same = newer(*model, LoadedTensors::of(file), dequantised(file).file(), false);
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(told(*model, **same), told(*model, *model->first()->weights));
  EXPECT_EQ((*same)->storage.size(), 1U) << "nothing of the old ones is needed";
}

TEST(NewerWeights, ShareWhatIsNotReplaced) {
  const files::GgufFile file = small_model();
  const auto model = load_one(file);
  const Weights& first = *model->first()->weights;
  adapting::Tensors all = dequantised(file);
  adapting::Tensors some;
  const std::string name = "blk.0.ffn_down.weight";
  some.add(name, doubled(adapting::values_of(all[name])));
  const auto part = newer(*model, LoadedTensors::of(file), some.file(), true);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ((*part)->layers[0].attention.query.matrix.data, first.layers[0].attention.query.matrix.data);
  EXPECT_NE((*part)->layers[0].feed_forward.down.matrix.data, first.layers[0].feed_forward.down.matrix.data);
  EXPECT_EQ((*part)->layers[0].feed_forward.down.matrix.number, first.layers[0].feed_forward.down.matrix.number);
  EXPECT_EQ((*part)->storage.size(), 2U);
  const auto before = told(*model, first);
  auto after = told(*model, **part);
  for (std::size_t i = 0; i < before.at(name).size(); ++i) EXPECT_EQ(after.at(name)[i], 2.0F * before.at(name)[i]);
  after[name] = before.at(name);
  EXPECT_EQ(after, before);
}

TEST(NewerWeights, ThatDoNotFitNameTheTensor) {
  const files::GgufFile file = small_model();
  const auto model = load_one(file);
  const LoadedTensors loaded = LoadedTensors::of(file);
  const auto fault = [&](const adapting::Tensors& tensors, bool partial) {
    const auto outcome = newer(*model, loaded, tensors.file(), partial);
    return outcome ? std::string("taken") : outcome.error().message;
  };
  adapting::Tensors all = dequantised(file);
  adapting::Tensors lacking = dequantised(file);
  lacking.remove("output_norm.weight");
  EXPECT_THAT(fault(lacking, false), HasSubstr("'output_norm.weight' is missing"));
  adapting::Tensors other;
  other.add("blk.0.attn_z.weight", adapting::values_of(all["output_norm.weight"]));
  EXPECT_THAT(fault(other, true), HasSubstr("'blk.0.attn_z.weight' is none of the model"));
  adapting::Tensors turned;
  adapting::Values values = adapting::values_of(all["blk.0.ffn_down.weight"]);
  std::swap(values.shape[0], values.shape[1]);
  turned.add("blk.0.ffn_down.weight", values);
  EXPECT_THAT(fault(turned, true), HasSubstr("'blk.0.ffn_down.weight' has the shape ["));
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity(), 1e30F}) {
    adapting::Tensors odd;
    values = adapting::values_of(all["blk.0.ffn_down.weight"]);
    values.at.back() = value;
    odd.add("blk.0.ffn_down.weight", values);
    EXPECT_THAT(fault(odd, true), HasSubstr(value == 1e30F ? "'blk.0.ffn_down.weight' holds a value that is too large for"
                                                           : "'blk.0.ffn_down.weight' holds a value that is infinite or no number"));
  }
}

// Rows of two revisions, with an adapter and without, in one batch.
TEST(NewerWeights, GiveTheirRowsTheSameBitsAloneAndBesideOlderOnes) {
  const files::GgufFile file = small_model();
  const auto& table = kernels::best_kernel_table();
  constexpr std::int32_t kBlocks = 200;
  adapting::Tensors some;
  adapting::Tensors all = dequantised(file);
  const std::string name = "blk.0.ffn_down.weight";
  some.add(name, doubled(adapting::values_of(all[name])));
  std::vector<DrivenRequest> requests;
  for (std::size_t i = 0; i < 12; ++i) {
    DrivenRequest& request = requests.emplace_back();
    for (std::size_t j = 0; j < 9 + 3 * i; ++j) request.prompt.push_back(static_cast<TokenId>(5 + (7 * i + 11 * j) % 90));
    request.sampling.temperature = 0.0F;
    request.sampling.top_logprobs = 0;
    request.stop.max_tokens = 12;
    request.adapter = static_cast<std::uint32_t>(i % 4);
  }
  const auto answers = [&](const Schedule& schedule) {
    auto model = LanguageModel::load(file, table, {.max_batch = 16, .pass_rows = 40, .end_tokens = {2}, .progress = {}}).value();
    model->allocate_kv(kBlocks).value();
    const auto tuned = adapting::RandomAdapter{.seed = 1, .rank = 4}.build(*model, table);
    const auto decoder = model->make_decoder(newer(*model, LoadedTensors::of(file), some.file(), true).value());
    using Parts = std::vector<AdapterSet::Part>;
    model->adapters().set(1, adapting::only(tuned));
    model->adapters().set(2, std::make_shared<AdapterSet>(Parts{}, decoder));
    model->adapters().set(3, std::make_shared<AdapterSet>(Parts{{tuned, 1.0F}}, decoder));
    return StepDriver(*model, kBlocks).run(requests, schedule);
  };
  const std::vector<DrivenAnswer> alone = answers({});
  const std::vector<DrivenAnswer> together = answers({.at_once = 12, .shuffle = true, .slice = 7, .seed = 3});
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(alone[i].tokens, together[i].tokens) << i;
    EXPECT_EQ(alone[i].logprobs, together[i].logprobs) << i;
  }
  for (DrivenRequest& request : requests) request.adapter = request.adapter == 2 ? 0 : request.adapter == 3 ? 1 : request.adapter;
  const std::vector<DrivenAnswer> older = answers({});
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(alone[i].logprobs == older[i].logprobs, i % 4 < 2) << i;
}

}  // namespace
}  // namespace braid::model::test
