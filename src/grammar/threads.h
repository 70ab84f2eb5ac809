// Follows an automaton over bytes: the set of places where it may be, each with its own stack of calls.
#pragma once

#include "grammar/automaton.h"

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace braid::grammar {

using FrameId = std::uint32_t;
inline constexpr FrameId kBottom = std::numeric_limits<FrameId>::max();

// Where a call returns to, and the frame below. `count` belongs to `state` when that is a loop's.
struct Frame {
  StateId state = 0;
  std::uint32_t count = 0;
  FrameId below = kBottom;
  std::uint32_t depth = 0;
};

// `covered`: what may follow it is what may follow another thread of the same set, from which calls lead to it or, when it does
// nothing but call, to which it leads.
struct Thread {
  StateId state = 0;
  std::uint32_t count = 0;
  FrameId frame = kBottom;
  bool covered = false;
};

// A stack of thread sets over one arena of frames; each set is the one before it advanced by a byte. Ambiguity beyond kMaxThreads
// and nesting beyond kMaxDepth are cut off: what is left is still a part of the language. A thread that cannot reach the end of the
// text without nesting beyond that is none to begin with.
class Threads {
 public:
  static constexpr std::size_t kMaxThreads = 128;
  static constexpr std::uint32_t kMaxDepth = 512;

  // kWithin looks at one rule alone: if that is a loop, it may go round and return at any count.
  enum class Scope : std::uint8_t { kWhole, kWithin };
  explicit Threads(const Automaton& automaton, Scope scope = Scope::kWhole) : automaton_(&automaton), scope_(scope) {}

  void clear();

  // Pushes the set that holds `state` with what it calls.
  void push_state(StateId state, std::uint32_t count, FrameId frame);
  // Pushes the set of what follows when the rule on top of `frame` returns.
  void push_return(FrameId frame);
  // Pushes the set that the top one becomes after `byte`.
  void push_byte(std::uint8_t byte);
  void pop();
  // Drops all sets but the top one, and the frames that nothing refers to.
  void keep_top();

  std::size_t size() const { return sets_.size(); }
  // The most threads that a set has had since this was asked last, and the deepest that a thread ever had to nest. More than
  // kMaxThreads and kMaxDepth: something was cut off.
  std::size_t take_widest() { return std::exchange(widest_, 0); }
  std::uint32_t deepest() const { return deepest_; }
  std::span<const Thread> top() const { return {threads_.data() + sets_.back().begin, threads_.size() - sets_.back().begin}; }
  // One of the top set; other than top(), valid while sets are pushed and popped above it.
  Thread top_at(std::size_t index) const { return threads_[sets_.back().begin + index]; }
  std::uint32_t depth(FrameId frame) const { return frame == kBottom ? 0 : frames_[frame].depth; }
  // Whether the top set reads another byte or has returned from the lowest rule.
  bool goes_on() const;
  // The count of the lowest rule's loop.
  std::uint32_t base_count(const Thread& thread) const;

  // Whether the top set was reached by a return from the lowest rule, and the least count its loop had then.
  bool returned() const { return sets_.back().returned != kNever; }
  std::uint32_t return_count() const { return sets_.back().returned; }

 private:
  static constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
  struct Set {
    std::size_t begin;
    std::size_t frames;  // arena size when the set was pushed
    std::uint32_t returned = kNever;
  };

  void open() { sets_.push_back({threads_.size(), frames_.size()}); }
  void add(Thread thread);
  bool fits(StateId state, FrameId frame);
  bool merge(const Thread& thread);
  bool same_stack(FrameId a, FrameId b) const;
  struct Call {
    StateId callee;
    StateId next;
    std::uint32_t next_count;
    FrameId frame;
  };
  void call(const Call& call, bool covered);
  void leave(std::uint32_t count, FrameId frame);

  const Automaton* automaton_;
  Scope scope_;
  std::vector<Thread> threads_;
  std::vector<Frame> frames_;
  std::vector<Set> sets_;
  std::vector<FrameId> moved_;  // scratch of keep_top
  std::size_t widest_ = 0;
  std::uint32_t deepest_ = 0;
};

}  // namespace braid::grammar
