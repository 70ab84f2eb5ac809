// Opens the folder of --kv-disk for a loaded model.
#pragma once

#include "app/loaded_model.h"
#include "app/options.h"
#include "braid/result.h"
#include "net/http/file_descriptor.h"
#include "store/block_store.h"

#include <boost/asio/io_context.hpp>
#include <memory>
#include <vector>

namespace braid::app {

// Host memory that it takes at most, but for what records hold besides their blocks: at least two states fit, because a state is saved as a
// whole.
std::size_t disk_buffer_bytes(const model::LanguageModel& model);

// Whether no sequence of such a model is ever restored: see Restorer::may_restore.
bool restores_nothing(const model::KvGroups& groups);

// Of its blocks' records, where no store brings them along.
store::BufferPool record_buffers(const LoadedModel& loaded);

// As BlockStore::open, which runs its calls on the loop. The model has its kv_identity. Any thread.
Result<std::unique_ptr<store::BlockStore>> open_store(const DiskOptions& options, const LoadedModel& loaded, boost::asio::io_context& loop,
                                                      net::FileDescriptor predecessors_lock = {});

// The same for a server, which takes its folder's out of `predecessors_locks`. Null, and a line in the log, when the folder cannot be used,
// another server has it, or the model could find nothing there again: then there is no disk tier. kInvalidArgument when the limit is too
// low.
Result<std::unique_ptr<store::BlockStore>> open_disk_cache(const DiskOptions& options, const LoadedModel& loaded,
                                                           boost::asio::io_context& loop,
                                                           std::vector<net::FileDescriptor>& predecessors_locks);

// Of the lock of this store (or null), for a successor; none while there is none to pass on.
net::FileDescriptor copy_lock(const store::BlockStore* store);

}  // namespace braid::app
