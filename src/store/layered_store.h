// A disk of this server's own above a store that servers share.
#pragma once

#include "store/block_store.h"
#include "store/record_store.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace braid::store {

// Reads from disk what that has. What is written goes to the disk and from there, in the same buffer, to the other. Both outlive it and have
// one pool of buffers.
class LayeredStore final : public RecordStore {
 public:
  LayeredStore(BlockStore& disk, RecordStore& shared);

  bool contains(const cache::PrefixKey& key) const override { return disk_.contains(key) || shared_.contains(key); }
  bool lacks(const cache::PrefixKey& key) const override { return disk_.lacks(key) || shared_.lacks(key); }
  bool knows(const cache::PrefixKey& key) const override { return disk_.contains(key) || shared_.knows(key); }
  void look_up(std::vector<cache::PrefixKey> keys, std::function<void()> done) override {
    shared_.look_up(std::move(keys), std::move(done));
  }
  std::optional<PendingRecord> begin_write(const cache::PrefixKey& key, const cache::SequenceView& sequence) override;
  void commit(PendingRecord record) override;
  void on_written(std::function<void()> hook) override;
  bool read(const cache::PrefixKey& key, std::shared_ptr<const Prefix> prefix, std::size_t tokens,
            std::function<void(std::optional<ReadBlock>)> done) override;
  void tend() override;
  std::size_t free_buffers() const override { return disk_.free_buffers(); }
  bool idle() const override { return disk_.idle() && shared_.idle(); }
  void fill(EngineStats& stats) const override;

 private:
  bool goes_to_disk(const cache::PrefixKey& key) const { return disk_.lacks(key) && disk_.can_write(); }

  BlockStore& disk_;
  RecordStore& shared_;
};

}  // namespace braid::store
