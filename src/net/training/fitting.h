// What a job makes of its texts, in pieces of a few milliseconds.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "net/training/head_fit.h"
#include "net/training/job_request.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::net::training {

// One thread at a time.
class Fitting {
 public:
  virtual ~Fitting() = default;

  // What is to be read of a text.
  virtual std::pair<Pooling, PooledOutput> reads() const = 0;
  // That of the next text. There may be pieces to it.
  virtual void take(std::vector<float> vector) = 0;

  // All texts are there.
  virtual Result<void> begin() = 0;
  // A piece: of what was taken, and once it has begun of an epoch, or some epochs up to the next checkpoint. Whether that is over.
  virtual bool advance() = 0;
  virtual std::int32_t epoch() const = 0;
  virtual bool done() const = 0;
  virtual FitFigures learnt() const = 0;
  virtual FitFigures held_out() const = 0;
  // Into the job's folder. kIo.
  virtual Result<void> save() const = 0;

  // The end of epochs is a checkpoint, too.
  bool is_checkpoint(std::int32_t every) const { return done() || (every > 0 && epoch() > 0 && epoch() % every == 0); }
};

// Takes the examples out of the request.
std::unique_ptr<Fitting> make_fitting(JobRequest& request, std::string folder);

}  // namespace braid::net::training
