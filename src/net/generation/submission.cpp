#include "net/generation/submission.h"

#include "braid/adapters.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <utility>

namespace braid::net {
namespace {

constexpr std::int32_t kUrgency = 10;  // ranks of priority
constexpr char kAccountSalt = '\x01';  // begins the salt of a request whose account has one

}  // namespace

Result<std::int32_t> priority_by_rules(const access::Rules& rules, std::optional<std::int32_t> asked, bool is_urgent) {
  if (!asked) return is_urgent ? std::max(rules.priority - kUrgency, rules.best_priority) : rules.priority;
  if (*asked >= rules.best_priority) return *asked;
  return invalid_argument(fmt::format("your requests may have a priority of {} at best, not {}", rules.best_priority, *asked), "priority");
}

Result<void> apply_rules(const access::Rules& rules, GenerationCall& call) {
  const Result<std::int32_t> priority = priority_by_rules(rules, call.priority, call.is_urgent);
  if (!priority) return priority.error();
  call.priority = *priority;
  if (call.cache_salt.starts_with(kAccountSalt))
    return invalid_argument("'cache_salt' may not begin with a control character", "cache_salt");
  if (!rules.cache_salt.empty()) call.cache_salt = fmt::format("{0}{1}{0}{2}", kAccountSalt, rules.cache_salt, call.cache_salt);
  return {};
}

Result<ModelHold> with_current_fingerprint(ModelHold model) {
  if (model->adapters == nullptr) return model;
  const Result<AdapterUse> use = model->adapters->current(model->adapter);
  if (!use) return use.error();
  const std::string& older = model->adapter.revision;
  if (use->revision == older) return model;
  struct Newer {
    ServedModel served;
    ModelHold older;  // of which others may know parts
  };
  const auto newer = std::make_shared<Newer>(Newer{*model, model});
  std::string& fingerprint = newer->served.fingerprint;
  if (!older.empty() && fingerprint.ends_with("-" + older)) fingerprint.resize(fingerprint.size() - older.size() - 1);
  if (!use->revision.empty()) fingerprint += "-" + use->revision;
  return ModelHold(newer, &newer->served);
}

Result<std::vector<Ticket>> submit_all(const ServedModel& model, access::Visit& visit, std::vector<GenerationRequest> requests,
                                       std::size_t prompt_tokens) {
  Engine& engine = *model.engine;
  for (GenerationRequest& request : requests) {
    if (model.adapters == nullptr) break;
    Result<AdapterUse> use = model.adapters->current(request.adapter);
    if (!use) return use.error();
    request.adapter = std::move(*use);
  }
  const Result<void> paid = visit.take_prompt(prompt_tokens, access::Clock::now());
  if (!paid) return paid.error();
  // Some of them would be in the way.
  const bool has_place = requests.front().reservation != nullptr;
  const Result<void> fits = has_place ? Result<void>() : engine.check_queue(requests.size(), requests.front().priority);
  if (!fits) {
    visit.give_back(prompt_tokens);
    return fits.error();
  }
  std::vector<Ticket> tickets;
  for (GenerationRequest& request : requests) {
    Result<Ticket> ticket = engine.submit(std::move(request));
    if (!ticket) {
      visit.give_back(prompt_tokens);
      return ticket.error();
    }
    tickets.push_back(std::move(*ticket));
  }
  return tickets;
}

}  // namespace braid::net
