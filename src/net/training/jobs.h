// Training jobs: what is being fitted, and what has been. Loop only.
#pragma once

#include "braid/tunable_layer.h"
#include "net/http/response.h"
#include "net/service/codec_jobs.h"
#include "net/training/head_fit.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net::training {

enum class JobState : std::uint8_t {
  kReading,    // its texts' vectors are computed
  kFitting,    //
  kLoading,    // what came out becomes an adapter
  kSucceeded,  //
  kFailed,     // `error` says why
  kCancelled,  //
};

struct Job {
  std::string id;
  std::string model;                   // the base
  std::string adapter;                 // what comes out
  std::string folder;                  // where it is written
  std::optional<LoraShape> lora = {};  // nothing: a head alone
  std::uint64_t bytes = 0;             // that it holds of its texts and of the model
  JobState state = JobState::kReading;
  bool is_of_pairs = false;
  std::size_t examples = 0;
  std::size_t held_out = 0;
  std::size_t texts = 0;
  std::size_t texts_read = 0;
  std::size_t tokens = 0;
  std::int32_t epochs = 0;
  std::int32_t epoch = 0;
  FitFigures figures = {};
  FitFigures held_out_figures = {};
  std::int32_t checkpoint_epoch = -1;  // that the folder holds; -1: none
  std::string revision = {};           // of the adapter, once it is loaded
  std::string error = {};
  std::int64_t created = 0;   // Unix seconds
  std::int64_t finished = 0;  // 0: not yet
  Abandonment cancellation = {};

  bool is_over() const { return state >= JobState::kSucceeded; }
};

class Jobs {
 public:
  static constexpr std::size_t kMostKept = 1000;                        // of those that are over the oldest go first
  static constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30U;  // of all that fit LoRA

  void add(std::shared_ptr<Job> job);
  std::shared_ptr<Job> find(std::string_view id) const;  // null: none
  // One that is not over and writes to that folder; null: none.
  std::shared_ptr<Job> busy_with(std::string_view folder) const;
  // Of those that are not over.
  std::uint64_t bytes() const;
  // What they leave of kMostBytes; nothing while a job is being made, of which there is one at a time.
  std::uint64_t bytes_left() const { return has_all_ || bytes() > kMostBytes ? 0 : kMostBytes - bytes(); }
  class Making {
   public:
    explicit Making(Jobs& jobs) : jobs_(jobs) { jobs_.has_all_ = true; }
    ~Making() { jobs_.has_all_ = false; }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

   private:
    Jobs& jobs_;
  };

  // GET /v1/training/jobs, newest first.
  http::Response list() const;
  // GET /v1/training/jobs/ID
  http::Response show(std::string_view id) const;
  // POST /v1/training/jobs/ID/cancel. What a checkpoint holds stays.
  http::Response cancel(std::string_view rest, std::string& body);

 private:
  std::vector<std::shared_ptr<Job>> jobs_;  // oldest first
  bool has_all_ = false;                    // a Making
};

void append_job(std::string& out, const Job& job);

}  // namespace braid::net::training
