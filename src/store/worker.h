// Threads that work off tasks in order of submission.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace braid::store {

// Destroying it waits for the running tasks and drops the others.
class Worker {
 public:
  explicit Worker(int threads);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From any thread. Tasks do not throw.
  void submit(std::function<void()> task);

 private:
  void run();

  std::mutex mutex_;  // of the two below
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace braid::store
