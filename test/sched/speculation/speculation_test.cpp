// Requests of all kinds at once, with guesses of all kinds, in a pool that holds some of them, with cancellations in between: each answer and
// each log-probability is bit for bit what the request gets where nothing is guessed.
#include "files/hf_folder.h"
#include "model/families/families.h"
#include "sched/speculation/answers.h"

#include <map>

namespace braid::sched::test {
namespace {

// `constraints`: null where the model knows no texts.
void compare(const files::GgufFile& file, const Constraints* constraints, std::int32_t kv_limit) {
  const auto plain_model = load(file, kRoomyBlocks, kv_limit, nullptr);
  std::vector<GenerationRequest> requests = make_requests(request_count(), constraints, plain_model->shape().vocab);
  const Run plain = run(*plain_model, options_of(*plain_model, kRoomyBlocks, 0), requests, false);
  std::map<AnswerKey, std::vector<TokenId>> wholes;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::vector<TokenId>& whole = wholes[key_of(requests[i].sampling)] = requests[i].prompt;
    whole.insert(whole.end(), plain.answers[i].tokens.begin(), plain.answers[i].tokens.end());
  }
  want_guesses(requests, plain.answers);
  for (const bool throws : {false, true}) {
    const auto drafter = std::make_shared<HostileDrafter>(wholes);
    if (throws) drafter->throw_now_and_then();
    const std::int32_t tight = kv_limit > 0 ? kTightWindows : kTightBlocks;
    const auto model = load(file, tight, kv_limit, drafter);
    const Run guessed = run(*model, options_of(*model, tight, 8), requests, true);
    std::int32_t accepted = 0;
    expect_same(plain.answers, guessed.answers, accepted);
    EXPECT_GT(accepted, 0);
    constexpr std::int32_t kLargeState = 9;  // beside which keys and values always fit
    if (model->kv_groups().states.blocks() < kLargeState) {
      EXPECT_GT(guessed.stats.preemptions, 0U);
    }
    std::vector<DraftSource> sources = {DraftSource::kPrediction, DraftSource::kDraft};
    if (constraints != nullptr) sources.insert(sources.end(), {DraftSource::kNgram, DraftSource::kSuffix, DraftSource::kGrammar});
    for (const DraftSource source : sources)
      EXPECT_GT(guessed.stats.drafts.accepted[static_cast<std::size_t>(source)][0], 0U) << static_cast<int>(source);
    EXPECT_GT(sum_of(guessed.stats.drafts.drafted), sum_of(guessed.stats.drafts.accepted));
    EXPECT_LT(guessed.stats.steps, guessed.stats.generated_tokens);
  }
}

TEST(Speculation, ChangesNoBitOfAnyAnswer) {
  const Constraints constraints;
  compare(small_model(), &constraints, 0);
}

TEST(Speculation, ChangesNoBitWithinAWindow) {
  const Constraints constraints;
  compare(small_model(), &constraints, 48);
}

class RecurrentSpeculation : public testing::TestWithParam<const char*> {};

TEST_P(RecurrentSpeculation, ChangesNoBit) {
  const auto folder = files::HfFolder::open(std::string(BRAID_SOURCE_DIR "/test/model/reference/folders/") + GetParam()).value();
  compare(files::GgufFile::from_contents(model::read_folder(folder).value()), nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, RecurrentSpeculation, testing::Values("lfm2", "granite4", "qwen3.5", "mamba2"), [](const auto& suite) {
  std::string name = suite.param;
  std::erase(name, '.');
  return name;
});

}  // namespace
}  // namespace braid::sched::test
