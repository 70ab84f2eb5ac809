// The work of a training job.
#pragma once

#include "braid/served_model.h"
#include "net/service/service.h"
#include "net/training/job_request.h"
#include "net/training/jobs.h"

#include <boost/asio/awaitable.hpp>
#include <memory>

namespace braid::net::training {

// Reads the texts at the lowest priority, fits the head in pieces on the codec worker, writes checkpoints and loads the adapter; tells all of
// it in the job. Owns its arguments.
boost::asio::awaitable<void> run_job(std::shared_ptr<Service> service, std::shared_ptr<Job> job, ModelHold model, JobRequest request);

}  // namespace braid::net::training
