// What tokens of answers are guessed from.
#include "app/cli/serve/groups.h"
#include "app/option_types.h"

#include <string>
#include <vector>

namespace braid::app {

void add_speculation_options(CLI::App& app, ServeOptions& options) {
  app.add_option_function<std::string>(
         "--speculate", [&batch = options.batch](const std::string& name) { batch.speculate = *draft_method_of(name); },
         "What tokens of answers are guessed from: auto (as far as it pays), off, ngram, suffix, draft or mtp")
      ->default_str("auto")
      ->check(CLI::IsMember(std::vector<std::string>(kDraftMethodNames.begin(), kDraftMethodNames.end())));
  add_integer(app, "--draft-tokens", options.batch.draft_tokens, 1, 64, "Tokens that are guessed at once for an answer, at most");
  app.add_flag("--speculate-always", options.batch.speculate_always,
               "Guess also where it costs more time than it saves: for comparisons of what guesses are worth");
  app.add_option(
         "--draft", options.drafts,
         "A small model, or a folder with an EAGLE-3 head, that guesses for another one: for all that are served, or one for each, or none")
      ->type_name("MODEL")
      ->allow_extra_args(false);
}

std::string speculation_fault(const ServeOptions& options) {
  if (options.batch.speculate == DraftMethod::kOff && !options.drafts.empty()) return "--draft contradicts --speculate off";
  if (options.batch.speculate == DraftMethod::kDraft && options.drafts.empty())
    return "--speculate draft needs a model to guess with: name it by --draft";
  if (options.batch.speculate_always && options.batch.speculate == DraftMethod::kOff)
    return "--speculate-always contradicts --speculate off";
  return {};
}

}  // namespace braid::app
