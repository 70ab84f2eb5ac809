// Images that a request names by their address.
#pragma once

#include "braid/result.h"
#include "net/generation/call.h"
#include "net/service/codec_jobs.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>

namespace braid::net {

bool has_unfetched(const GenerationCall& call);

// Fetches them one after the other, each within the limits of ServerOptions::fetch_image. kInvalidArgument names the one that could not be
// had, or says that this server fetches none. kCancelled when it was abandoned before. Loop only; all outlive the wait.
boost::asio::awaitable<Result<void>> fetch_images(Service& service, Abandonment& abandonment, GenerationCall& call);

}  // namespace braid::net
