#include "net/generation/preparation.h"

#include "net/generation/fetched_images.h"
#include "net/generation/forced_calls.h"
#include "net/generation/prompt_cutting.h"
#include "net/generation/prompts.h"
#include "net/generation/shown_images.h"
#include "net/generation/strict_calls.h"
#include "net/generation/thinking_budget.h"
#include "net/generation/token_rules.h"
#include "net/generation/turns.h"
#include "net/json/parse.h"
#include "net/service/asked_model.h"
#include "net/service/codec_jobs.h"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace braid::net {

namespace asio = boost::asio;

namespace {

using Prompts = std::vector<std::vector<TokenId>>;

// Touches nothing but its members and what is immutable of the model: may run on any thread.
struct Preparation {
  const Dialect& dialect;
  std::string_view client;
  std::string& body;
  std::optional<Value> document = {};       // once parsed
  AskedModel asked = {};                    // likewise
  ModelHold model = {};                     // once found, on the loop
  std::vector<std::string> seeing = {};     // likewise: where that one does not, names of models that see
  std::optional<GenerationCall> call = {};  // once read
  Prompts prompts = {};

  Result<void> parse() {
    Result<Value> parsed = json::parse_object(body);
    if (!parsed) return parsed.error();
    Result<AskedModel> named = asked_model(*parsed);
    if (!named) return named.error();
    const Result<std::optional<KeepAlive>> kept = dialect.keep_alive(*parsed);
    if (!kept) return kept.error();
    document = std::move(*parsed);
    asked = std::move(*named);
    asked.keep_alive = *kept;
    return {};
  }

  // True when that is all that is wanted: the answer is there. On the loop.
  bool unloads(const ServiceStatus& status) {
    if (status.host == nullptr) return false;
    const Result<std::string> id = status.host->find(asked.name);
    std::optional<std::string> answer = id ? dialect.unload_answer(*document, *id) : std::nullopt;
    if (!answer) return false;
    status.host->unload(*id);  // nobody waits for it
    call.emplace();
    call->said_at_once = std::move(answer);
    return true;
  }

  Result<void> read() {
    Result<Wish> wish = dialect.read(*document, *model, client);
    if (!wish) return wish.error();
    call.emplace(std::move(*wish));
    document.reset();
    if (model->generates || call->pooling != Pooling::kNone) return {};
    return invalid_argument(fmt::format("the model '{}' reads texts and generates none", model->id), "model");
  }

  // Whether there is something that has to be waited for on the loop, before the prompt can be made.
  bool fetches() const { return model->images != nullptr && has_unfetched(*call); }

  bool has_own_template() const {
    const auto* chat = std::get_if<ChatPrompt>(&call->prompt);
    return chat != nullptr && !chat->template_text.empty();
  }

  Result<void> check_images() const {
    if (call->images.empty()) return {};
    if (model->images == nullptr) return cannot_see(*model, *call, seeing);
    if (!call->prompt_tail && !call->prompt_head) return {};
    return invalid_argument("a prompt with images cannot be cut to a number of tokens", "truncate_prompt_tokens");
  }

  Result<void> encode() {
    if (call->said_at_once) return {};
    if (const Result<void> seen = check_images(); !seen) return seen;
    Result<Prompts> encoded = call->drops_oldest_turns ? encode_last_turns(*model, *call) : encode_prompts(*model, *call);
    if (!encoded) return encoded.error();
    prompts = std::move(*encoded);
    if (const Result<void> cut = cut_prompts(prompts, *call, *model); !cut) return cut;
    if (call->return_token_ids) call->prompt_tokens = prompts;
    if (call->echo) echo();
    const Result<void> compiled = call->wants_constraint() ? compile() : Result<void>();
    if (!compiled) return compiled;
    const Result<void> sought = compile_stops();
    if (!sought) return sought;
    call->constraint = with_token_rules(*call, model->codec->vocab_size());
    call->constraint = with_thinking_budget(*model->codec, *call);
    return predict();
  }

  // As tokens: those of a text that begins where the answer does.
  Result<void> predict() {
    if (call->prediction.empty() || call->speculation.method == DraftMethod::kOff) return {};
    Result<std::vector<TokenId>> tokens = model->codec->encode(call->prediction, {.add_special = false, .parse_special = false});
    if (!tokens) return tokens.error();
    call->speculation.prediction = std::make_shared<const std::vector<TokenId>>(std::move(*tokens));
    call->prediction.clear();
    return {};
  }

  // A chat's answer begins with the message that it goes on with, which is not scored.
  void echo() {
    if (const auto* chat = std::get_if<ChatPrompt>(&call->prompt)) {
      call->echoes = last_words(*chat);
      call->echo = false;
    } else {
      call->echoes = prompt_texts(*model->codec, std::get<std::vector<PromptItem>>(call->prompt));
    }
  }

  Result<void> compile_stops() {
    for (const std::string& pattern : call->stop_patterns) {
      if (model->constraints == nullptr) return invalid_argument("'stop_regex' is not supported by this server", "stop_regex");
      Result<std::shared_ptr<const TextSearch>> search = model->constraints->search(pattern, "stop_regex");
      if (!search) return search.error();
      call->stop_searches.push_back(std::move(*search));
    }
    return {};
  }

  Result<void> compile() {
    const std::optional<ConstraintSpec> spec = whole_spec();
    if (!spec || model->constraints == nullptr) return {};
    auto constraint = model->constraints->compile(*spec);
    if (!constraint) return constraint.error();
    for (const std::string& path : (*constraint)->left_out())  // a schema may stand in several places of a constraint
      if (std::ranges::find(call->schema_ignored, path) == call->schema_ignored.end()) call->schema_ignored.push_back(path);
    call->constraint = std::move(*constraint);
    return {};
  }

  // What binds the answer.
  std::optional<ConstraintSpec> whole_spec() const {
    const bool callable = call->tools && call->syntax && call->syntax->calls != nullptr;
    if (callable && call->tools->required) return forced_calls(*call->tools, *call->syntax);
    if (callable && call->constraint_spec) return calls_or(*call->tools, *call->syntax, *call->constraint_spec);
    if (callable) return strict_calls(*call->tools, *call->syntax);
    if (!call->syntax || !call->constraint_spec) return call->constraint_spec;
    return after_reasoning(*call->syntax, *call->constraint_spec);
  }

  Prepared take() { return {std::move(model), std::move(*call), std::move(prompts)}; }
};

// Names of models that are loaded and see images.
std::vector<std::string> seeing_models(const ServiceStatus& status) {
  std::vector<std::string> names;
  for (const ServedModel* model : status.models.all())
    if (model->images != nullptr) names.push_back(model->id);
  return names;
}

}  // namespace

asio::awaitable<Result<Prepared>> prepare(Service& service, const Dialect& dialect, std::string_view client, std::string& body,
                                          Abandonment& abandonment) {
  if (const Result<void> serves = check_service(service.status); !serves) co_return serves.error();
  Preparation preparation{dialect, client, body};
  const std::size_t most = service.options.max_inline_body_bytes;
  const bool is_short = body.size() <= most;
  Result<void> result;
  if (is_short) {
    result = preparation.parse();
  } else {
    std::function<void()> parsing = [&preparation, &result] { result = preparation.parse(); };
    const Result<void> ran = co_await run_codec_job(service, abandonment, std::move(parsing));
    if (!ran) co_return ran.error();
  }
  if (!result) co_return result.error();
  if (preparation.unloads(service.status)) co_return preparation.take();
  Result<ModelHold> model = take_model(service.status, preparation.asked);
  if (model && *model == nullptr) model = co_await await_model(service.status, abandonment, preparation.asked);
  if (!model) co_return model.error();
  preparation.model = std::move(*model);
  if (preparation.model->images == nullptr) preparation.seeing = seeing_models(service.status);
  if (is_short && body.size() + dialect.recalled_bytes(*preparation.document, client) <= most) {
    result = preparation.read();
    if (!result) co_return result.error();
    // A query beside each of many documents is not little, nor is what a template of the request's own may do.
    const bool is_little = bytes_to_encode(*preparation.call) <= most && !preparation.has_own_template();
    if (is_little && !preparation.call->wants_constraint() && preparation.call->stop_patterns.empty() && preparation.call->images.empty()) {
      result = preparation.encode();
      if (!result) co_return result.error();
      co_return preparation.take();
    }
  }
  std::function<void()> work = [&preparation, &result] {
    if (!preparation.call) result = preparation.read();
    if (result && !preparation.fetches()) result = preparation.encode();
  };
  if (!preparation.call || !preparation.fetches()) {
    const Result<void> ran = co_await run_codec_job(service, abandonment, work);
    if (!ran) co_return ran.error();
    if (!result) co_return result.error();
    if (!preparation.fetches()) co_return preparation.take();
  }
  const Result<void> fetched = co_await fetch_images(service, abandonment, *preparation.call);
  if (!fetched) co_return fetched.error();
  const Result<void> ran = co_await run_codec_job(service, abandonment, std::move(work));
  if (!ran) co_return ran.error();
  if (!result) co_return result.error();
  co_return preparation.take();
}

}  // namespace braid::net
