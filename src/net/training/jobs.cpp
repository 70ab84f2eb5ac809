#include "net/training/jobs.h"

#include "net/http/error_response.h"
#include "net/json/parse.h"
#include "net/json/write.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace braid::net::training {
namespace {

std::string_view state_name(JobState state) {
  switch (state) {
    case JobState::kReading:
      return "reading";
    case JobState::kFitting:
      return "fitting";
    case JobState::kLoading:
      return "loading";
    case JobState::kSucceeded:
      return "succeeded";
    case JobState::kFailed:
      return "failed";
    case JobState::kCancelled:
      return "cancelled";
  }
  return {};
}

void append_figures(std::string& out, std::string_view name, const Job& job, const FitFigures& figures, std::size_t examples) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":)", name);
  if (examples == 0 || job.epoch == 0) {
    out += "null";
    return;
  }
  fmt::format_to(std::back_inserter(out), R"({{"loss":{})", figures.loss);
  if (job.is_of_pairs) fmt::format_to(std::back_inserter(out), R"(,"accuracy":{})", figures.accuracy);
  out += '}';
}

void append_text_or_null(std::string& out, const std::string& text) {
  if (text.empty()) {
    out += "null";
  } else {
    json::append_lossy_string(out, text);
  }
}

void append_lora(std::string& out, const std::optional<LoraShape>& lora) {
  if (!lora) {
    out += R"("lora_config":null,)";
    return;
  }
  fmt::format_to(std::back_inserter(out), R"("lora_config":{{"rank":{},"alpha":{},"target_modules":[)", lora->rank, lora->alpha);
  std::string_view separator = "";
  for (const std::string& name : lora->modules) out += fmt::format("{}{}", std::exchange(separator, ","), json::quoted(name));
  out += "]},";
}

http::Response told(const Job& job) {
  http::Response response;
  append_job(response.body, job);
  return response;
}

http::Response unknown(std::string_view id) {
  return http::error_response({ErrorCode::kNotFound, fmt::format("there is no training job '{}'", id), "id"});
}

}  // namespace

void append_job(std::string& out, const Job& job) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"id":{},"object":"training.job","status":"{}","model":{},"name":{},"kind":"{}","examples":{},)", json::quoted(job.id),
                 state_name(job.state), json::quoted(job.model), json::quoted(job.adapter), job.is_of_pairs ? "pairs" : "scores",
                 job.examples);
  append_lora(out, job.lora);
  fmt::format_to(std::back_inserter(out), R"("texts":{{"done":{},"total":{},"tokens":{}}},"epochs":{{"done":{},"total":{}}})",
                 job.texts_read, job.texts, job.tokens, job.epoch, job.epochs);
  append_figures(out, "learnt", job, job.figures, job.examples - job.held_out);
  append_figures(out, "held_out", job, job.held_out_figures, job.held_out);
  out += R"(,"checkpoint":)";
  if (job.checkpoint_epoch < 0) {
    out += "null";
  } else {
    fmt::format_to(std::back_inserter(out), R"({{"epoch":{},"path":{}}})", job.checkpoint_epoch, json::quoted(job.folder));
  }
  out += R"(,"revision":)";
  append_text_or_null(out, job.revision);
  out += R"(,"error":)";
  append_text_or_null(out, job.error);
  fmt::format_to(std::back_inserter(out), R"(,"created":{},"finished":)", job.created);
  out += job.finished > 0 ? fmt::format("{}}}", job.finished) : "null}";
}

void Jobs::add(std::shared_ptr<Job> job) {
  if (jobs_.size() >= kMostKept) {
    const auto oldest = std::ranges::find_if(jobs_, [](const auto& known) { return known->is_over(); });
    if (oldest != jobs_.end()) jobs_.erase(oldest);
  }
  jobs_.push_back(std::move(job));
}

std::shared_ptr<Job> Jobs::find(std::string_view id) const {
  const auto found = std::ranges::find_if(jobs_, [id](const auto& job) { return job->id == id; });
  return found == jobs_.end() ? nullptr : *found;
}

std::shared_ptr<Job> Jobs::busy_with(std::string_view folder) const {
  const auto found = std::ranges::find_if(jobs_, [folder](const auto& job) { return !job->is_over() && job->folder == folder; });
  return found == jobs_.end() ? nullptr : *found;
}

std::uint64_t Jobs::bytes() const {
  std::uint64_t all = 0;
  for (const auto& job : jobs_)
    if (!job->is_over()) all += job->bytes;
  return all;
}

http::Response Jobs::list() const {
  http::Response response;
  response.body = R"({"object":"list","data":[)";
  std::string_view separator = "";
  for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
    response.body += std::exchange(separator, ",");
    append_job(response.body, **job);
  }
  response.body += "]}";
  return response;
}

http::Response Jobs::show(std::string_view id) const {
  const std::shared_ptr<Job> job = find(id);
  return job != nullptr ? told(*job) : unknown(id);
}

http::Response Jobs::cancel(std::string_view rest, std::string& body) {
  constexpr std::string_view kCancel = "/cancel";
  if (!rest.ends_with(kCancel))
    return http::error_response(
        {ErrorCode::kNotFound, fmt::format("there is no route /v1/training/jobs/{} that takes this method", rest), ""});
  if (!body.empty())
    if (const Result<Value> document = json::parse_object(body); !document) return http::error_response(document.error());
  rest.remove_suffix(kCancel.size());
  const std::shared_ptr<Job> job = find(rest);
  if (job == nullptr) return unknown(rest);
  if (!job->is_over()) {
    job->state = JobState::kCancelled;
    job->cancellation.abandon();
  }
  return told(*job);
}

}  // namespace braid::net::training
