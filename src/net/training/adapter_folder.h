// A fitted head as an adapter of PEFT, which is also the checkpoint of a job.
#pragma once

#include "braid/result.h"
#include "net/training/head_fit.h"

#include <string>

namespace braid::net::training {

// Any thread. kIo with what could not be written: what stood there before stays.
Result<void> write_head(const std::string& folder, const LinearHead& head);

// kInvalidArgument ("resume"): there is none of that width.
Result<LinearHead> read_head(const std::string& folder, std::size_t width);

// Whether it is there and no job has written it.
bool is_of_others(const std::string& folder);

}  // namespace braid::net::training
