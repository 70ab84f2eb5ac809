#include "net/training/create.h"

#include "braid/adapters.h"
#include "net/http/error_response.h"
#include "net/json/parse.h"
#include "net/service/asked_model.h"
#include "net/training/adapter_folder.h"
#include "net/training/job_request.h"
#include "net/training/run_job.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cstdint>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::net::training {
namespace {

namespace asio = boost::asio;

// A job may only be about a base: what comes out is an adapter of it.
Result<ModelHold> base_of(Service& service, const AskedModel& asked) {
  if (const Result<void> serves = check_service(service.status); !serves) return serves.error();
  Result<ModelHold> model = take_model(service.status, asked);
  if (!model) return model;
  if (*model == nullptr) return Error{ErrorCode::kNotFound, fmt::format("the model '{}' is not loaded", asked.name), "model"};
  if ((*model)->is_adapted)
    return invalid_argument(fmt::format("'{}' is adapted: a head is fitted to a base, and becomes an adapter of it", (*model)->id),
                            "model");
  if ((*model)->adapters == nullptr) return invalid_argument(fmt::format("the model '{}' takes no adapters", (*model)->id), "model");
  if (!(*model)->adapters->take_heads())
    return invalid_argument(
        fmt::format("the model '{}' reads whole texts, and a head is fitted to one that reads token by token", (*model)->id), "model");
  return model;
}

// Where what comes out is written.
Result<std::string> folder_of(const Service& service, const Jobs& jobs, const JobRequest& request) {
  if (service.options.adapter_dirs.empty())
    return invalid_argument("what is fitted is written below the first folder of --adapter-dir: start the server with one", "name");
  std::string folder = (std::filesystem::path(service.options.adapter_dirs.front()) / request.adapter).string();
  if (jobs.busy_with(folder) != nullptr)
    return invalid_argument(fmt::format("a job that makes '{}' is running: cancel it first", request.adapter), "name");
  if (is_of_others(folder))
    return invalid_argument(fmt::format("{} is there, and no training job has made it: choose another name", folder), "name");
  return folder;
}

// The last layer of the revision that the texts will be read with.
asio::awaitable<Result<void>> tune(ModelHold model, JobRequest& request, std::uint64_t most_bytes) {
  const Result<AdapterUse> use = model->adapters->current(model->adapter);
  if (!use) co_return use.error();
  request.revision = use->revision;
  asio::awaitable<Result<std::shared_ptr<TunableLayer>>> making = model->adapters->tunable_layer(*use, request.lora->shape, most_bytes);
  Result<std::shared_ptr<TunableLayer>> layer = co_await std::move(making);
  if (!layer) co_return layer.error();
  request.layer = std::move(*layer);
  co_return Result<void>();
}

// What a job is going to hold, of what all may.
Result<std::uint64_t> bytes_of(const Jobs& jobs, const JobRequest& request) {
  if (!request.lora) return std::uint64_t{0};
  std::uint64_t texts = 0;
  std::size_t longest = 0;
  for (const auto& text : request.texts) {
    texts += request.layer->text_bytes(text.size());
    longest = std::max(longest, text.size());
  }
  texts += request.layer->work_bytes(longest);
  const std::uint64_t layer = request.layer->bytes();
  if (texts + layer + jobs.bytes() <= Jobs::kMostBytes) return texts + layer;
  const auto mebibytes = [](std::uint64_t bytes) { return (bytes >> 20U) + 1; };
  return invalid_argument(
      fmt::format("what is kept of {} texts takes {} MiB and the model's last layer {} MiB, jobs that are running have {} MiB, and LoRA "
                  "has {} MiB in all: give fewer or shorter texts, or wait",
                  request.texts.size(), mebibytes(texts), mebibytes(layer), jobs.bytes() >> 20U, Jobs::kMostBytes >> 20U),
      "data");
}

asio::awaitable<Result<std::shared_ptr<Job>>> begin(std::shared_ptr<Service> service, Jobs& jobs, std::string& body) {
  Result<Value> document = Error{};
  Abandonment abandonment;
  std::function<void()> parsing = [&] { document = json::parse_object(body); };
  const Result<void> parsed = co_await run_codec_job(*service, abandonment, std::move(parsing));
  if (!parsed) co_return parsed.error();
  if (!document) co_return document.error();
  const Result<AskedModel> asked = asked_model(*document);
  if (!asked) co_return asked.error();
  const Result<ModelHold> model = base_of(*service, *asked);
  if (!model) co_return model.error();
  Result<JobRequest> request = Error{};
  std::function<void()> reading = [&] { request = read_job(*document, **model); };
  const Result<void> read = co_await run_codec_job(*service, abandonment, std::move(reading));
  if (!read) co_return read.error();
  if (!request) co_return request.error();
  const std::uint64_t left = jobs.bytes_left();
  std::optional<Jobs::Making> making;
  if (request->lora && left > 0) making.emplace(jobs);
  if (request->lora) {
    // Named, because g++ 12 destroys some temporaries of such an expression twice.
    asio::awaitable<Result<void>> tuning = tune(*model, *request, left);
    const Result<void> tuned = co_await std::move(tuning);
    if (!tuned) co_return tuned.error();
  }
  const Result<std::string> folder = folder_of(*service, jobs, *request);
  if (!folder) co_return folder.error();
  const Result<std::uint64_t> bytes = bytes_of(jobs, *request);
  if (!bytes) co_return bytes.error();
  auto job = std::make_shared<Job>();
  if (request->lora) job->lora = request->lora->shape;
  job->bytes = *bytes;
  job->id = service->new_id("train-");
  job->model = (*model)->id;
  job->adapter = request->adapter;
  job->folder = *folder;
  job->is_of_pairs = request->examples.front().rejected.has_value();
  job->examples = request->examples.size();
  job->held_out = request->fit.held_out;
  job->texts = request->texts.size();
  job->epochs = request->fit.epochs;
  job->created = static_cast<std::int64_t>(std::time(nullptr));
  jobs.add(job);
  const auto log_bug = [](const std::exception_ptr& bug) {
    if (bug) spdlog::error("a training job ended by an exception");
  };
  asio::co_spawn(service->loop, run_job(service, job, *model, std::move(*request)), log_bug);
  co_return job;
}

}  // namespace

asio::awaitable<http::Response> create(std::shared_ptr<Service> service, std::shared_ptr<http::Connection> /*connection*/, Jobs& jobs,
                                       std::string body) {
  Result<std::shared_ptr<Job>> job = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
  try {
    asio::awaitable<Result<std::shared_ptr<Job>>> beginning = begin(service, jobs, body);
    job = co_await std::move(beginning);
  } catch (const std::exception& bug) {
    spdlog::error("making a training job: {}", bug.what());
  }
  if (!job) co_return http::error_response(job.error());
  http::Response response;
  append_job(response.body, **job);
  co_return response;
}

}  // namespace braid::net::training
