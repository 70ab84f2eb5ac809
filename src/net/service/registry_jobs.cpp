#include "net/service/registry_jobs.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace braid::net {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kShortJobThreads = 2;

// Threads are made when something is asked of them for the first time.
asio::thread_pool& workers_of(Service& service) {
  if (!service.registry_workers) service.registry_workers.emplace(kShortJobThreads + kMostTransfers);
  return *service.registry_workers;
}

// An exception must not leave a thread.
void run_caught(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& bug) {
    spdlog::error("the registry: {}", bug.what());
  }
}

void add_news(RegistryTask& task, TransferProgress progress) {
  const auto same = [&](const TransferProgress& other) { return other.status == progress.status && other.digest == progress.digest; };
  if (!task.news.empty() && same(task.news.back()))
    task.news.back() = std::move(progress);
  else
    task.news.push_back(std::move(progress));
  task.arrived.notify();
}

}  // namespace

Result<ModelRegistry*> registry_of(const Service& service) {
  if (service.options.registry != nullptr) return service.options.registry.get();
  return Error{ErrorCode::kNotFound, "this server has no data folder; start it with --data-dir", ""};
}

asio::awaitable<void> run_registry_job(Service& service, std::function<void()> work) {
  struct Job {
    Signal ended;
    bool over = false;
  };
  const auto job = std::make_shared<Job>();
  asio::post(workers_of(service), [&loop = service.loop, job, work = std::move(work)] {
    run_caught(work);
    asio::post(loop, [job] {
      job->over = true;
      job->ended.notify();
    });
  });
  while (!job->over) co_await job->ended.wait();
}

Result<std::shared_ptr<RegistryTask>> begin_registry_task(Service& service,
                                                          std::function<Result<void>(ModelRegistry&, const ProgressSink&)> work) {
  const Result<ModelRegistry*> registry = registry_of(service);
  if (!registry) return registry.error();
  std::erase_if(service.registry_tasks, [](const std::weak_ptr<RegistryTask>& task) { return task.expired() || task.lock()->result; });
  if (service.registry_tasks.size() >= kMostTransfers)
    return Error{ErrorCode::kOverloaded,
                 fmt::format("{} models are being pulled, pushed or created already; try again later", kMostTransfers), ""};
  auto task = std::make_shared<RegistryTask>();
  service.registry_tasks.push_back(task);
  asio::post(workers_of(service), [&loop = service.loop, task, registry = *registry, work = std::move(work)]() mutable {
    const ProgressSink sink = [&](const TransferProgress& progress) {
      asio::post(loop, [task, progress] { add_news(*task, progress); });
      return !task->is_unwanted;
    };
    Result<void> result = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
    run_caught([&] { result = work(*registry, sink); });
    asio::post(loop, [task = std::move(task), result = std::move(result)] {
      task->result = result;
      task->arrived.notify();
    });
  });
  return task;
}

}  // namespace braid::net
