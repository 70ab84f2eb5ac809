#include "app/cli/serve/groups.h"
#include "app/option_types.h"
#include "net/json/parse.h"

#include <limits>
#include <string>
#include <utility>

namespace braid::app {
namespace {

template <class Number>
void add_number(CLI::App& app, const char* name, std::optional<Number>& target, Number low, Number high, const char* help) {
  app.add_option_function<Number>(
         name, [&target](const Number& value) { target = value; }, help)
      ->check(CLI::Range(low, high));
}

}  // namespace

void add_answer_options(CLI::App& app, ServeOptions& options) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  RequestDefaults& defaults = options.defaults;
  add_number(app, "--temperature", defaults.temperature, 0.0F, 2.0F, "Of requests that say nothing of it; so are the next ones");
  add_number(app, "--top-p", defaults.top_p, 0.0F, 1.0F, "Share of the most probable tokens; 0: the best one");
  add_number(app, "--top-k", defaults.top_k, 0, kMost, "So many of the most probable tokens; 0: all");
  add_number(app, "--min-p", defaults.min_p, 0.0F, 1.0F, "Tokens with at least this share of the best one's probability");
  add_number(app, "--repeat-penalty", defaults.repetition_penalty, 0.01F, 10.0F, "For tokens that were there already; 1: none");
  add_number(app, "--seed", defaults.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
             "Equal requests give equal answers");
  add_number(app, "--max-tokens", defaults.max_tokens, 0, kMost, "Of one answer");
  app.add_option_function<std::string>(
         "--reasoning",
         [&defaults](const std::string& state) {
    if (state != "auto") defaults.reasoning = state == "on";
         },
         "Whether models think whose template can be told: on, off, or auto (as the template does)")
      ->default_str("auto")
      ->check(CLI::IsMember({"on", "off", "auto"}));
  app.add_option_function<std::string>(
         "--chat-template-kwargs",
         [&defaults](const std::string& text) {
    std::string copy = text;
    Result<Value> parsed = net::json::parse(copy);
    if (!parsed || parsed->get_if<ValueDict>() == nullptr)
      throw CLI::ValidationError("--chat-template-kwargs", "'" + text + "' is no JSON object");
    defaults.template_kwargs = std::move(*parsed);
         },
         "Variables of the chat template, beside a request's own")
      ->type_name("JSON");
  app.add_flag("--strict-parameters", defaults.strict_parameters, "Requests with parameters that this server does not know are refused");
  app.add_flag("--any-model-name", options.any_model_name, "A request that names a model which there is not is answered all the same");
}

}  // namespace braid::app
