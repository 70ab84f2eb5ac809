// Opens the folder of --kv-disk for a loaded model.
#pragma once

#include <app/loaded_model.h>
#include <app/options.h>
#include <store/block_store.h>

#include <braid/result.h>

#include <boost/asio/io_context.hpp>

#include <memory>

namespace braid::app {

store::StoreOptions store_options(const DiskOptions& options, const LoadedModel& loaded);

// Null, and a line in the log, when the folder cannot be used or another server has it: then there is no disk tier.
// kInvalidArgument when the limit is too low. The model has its kv_identity. Any thread; the store's calls run on the loop.
Result<std::unique_ptr<store::BlockStore>> open_disk_cache(const DiskOptions& options, const LoadedModel& loaded,
                                                           boost::asio::io_context& loop);

}  // namespace braid::app
