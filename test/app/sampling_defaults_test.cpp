#include "app/loaded_model.h"

#include <gtest/gtest.h>

namespace braid::app {
namespace {

RequestDefaults defaults_of(std::vector<std::pair<std::string, files::GgufValue>> metadata) {
  files::GgufContents contents;
  contents.sources.push_back(files::owned_bytes({}, "model"));
  contents.metadata = std::move(metadata);
  return sampling_defaults(files::GgufFile::from_contents(std::move(contents)));
}

TEST(SamplingDefaults, AreThoseOfTheFile) {
  const RequestDefaults defaults = defaults_of(
      {{"general.sampling.temp", 0.5}, {"general.sampling.top_k", std::uint64_t{40}}, {"general.sampling.penalty_repeat", 1.25}});
  EXPECT_EQ(defaults.temperature, 0.5F);
  EXPECT_EQ(defaults.top_k, 40);
  EXPECT_EQ(defaults.repetition_penalty, 1.25F);
  EXPECT_FALSE(defaults.top_p);
}

TEST(SamplingDefaults, ThatNoRequestCouldHaveAreLeftOut) {
  const RequestDefaults defaults = defaults_of({{"general.sampling.temp", -1.0}, {"general.sampling.top_p", std::string("much")}});
  EXPECT_FALSE(defaults.temperature);
  EXPECT_FALSE(defaults.top_p);
}

TEST(SamplingDefaults, OfTheOperatorGoBeforeTheModels) {
  const RequestDefaults joined = or_defaults({.temperature = 0.0F}, {.temperature = 0.5F, .top_p = 0.9F});
  EXPECT_EQ(joined.temperature, 0.0F);
  EXPECT_EQ(joined.top_p, 0.9F);
}

}  // namespace
}  // namespace braid::app
