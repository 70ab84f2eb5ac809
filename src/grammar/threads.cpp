#include "grammar/threads.h"

#include "grammar/grammar.h"

#include <algorithm>

namespace braid::grammar {
namespace {

constexpr std::size_t kFramesWorthCompacting = 256;

}  // namespace

void Threads::clear() {
  threads_.clear();
  frames_.clear();
  sets_.clear();
}

void Threads::push_state(StateId state, std::uint32_t count, FrameId frame) {
  open();
  add({state, count, frame, false});
}

void Threads::push_return(FrameId frame) {
  open();
  const Frame target = frames_[frame];
  add({target.state, target.count, target.below, false});
}

void Threads::push_byte(std::uint8_t byte) {
  const std::size_t begin = sets_.back().begin;
  const std::size_t end = threads_.size();
  open();
  for (std::size_t i = begin; i < end; ++i) {
    const Thread thread = threads_[i];
    const StateId next = automaton_->next(automaton_->states[thread.state], byte);
    if (next != kNoState) add({next, 0, thread.frame, false});
  }
}

void Threads::pop() {
  threads_.resize(sets_.back().begin);
  frames_.resize(sets_.back().frames);
  sets_.pop_back();
}

void Threads::add(Thread thread) {
  const State& state = automaton_->states[thread.state];
  if (!fits(thread.state, thread.frame) || merge(thread)) return;
  const std::size_t size = threads_.size() - sets_.back().begin;
  widest_ = std::max(widest_, size + 1);
  if (size >= kMaxThreads) return;
  threads_.push_back(thread);
  threads_.back().covered = thread.covered || state.forwards;
  if (state.plain) return;
  if (state.loop != kNoState) {
    const bool open = scope_ == Scope::kWithin && thread.frame == kBottom;
    const Loop loop = open ? Loop{automaton_->loops[state.loop].body, 0, kUnbounded - 1, 0} : automaton_->loops[state.loop];
    const bool unbounded = loop.max == kUnbounded;
    if (unbounded || thread.count < loop.max)
      call({loop.body, thread.state, unbounded ? std::min(thread.count + 1, loop.min) : thread.count + 1, thread.frame}, true);
    if (thread.count >= loop.min) leave(thread.count, thread.frame);
    return;
  }
  for (const CallEdge& edge : automaton_->calls(state)) {
    const bool covered = !state.forwards || thread.covered;
    if (edge.tail) {
      add({edge.callee, 0, thread.frame, covered});
    } else {
      call({edge.callee, edge.next, 0, thread.frame}, covered);
    }
  }
  if (state.final) leave(0, thread.frame);
}

// Whether the state's rule can reach its end on top of `frame`.
bool Threads::fits(StateId state, FrameId frame) {
  const std::uint32_t needed = depth(frame) + automaton_->states[state].depth;
  deepest_ = std::max(deepest_, needed);
  return needed <= kMaxDepth;
}

// Whether the top set has the thread already.
bool Threads::merge(const Thread& thread) {
  for (std::size_t i = sets_.back().begin; i < threads_.size(); ++i) {
    Thread& other = threads_[i];
    if (other.state != thread.state || other.count != thread.count || !same_stack(other.frame, thread.frame)) continue;
    other.covered = other.covered && thread.covered;
    return true;
  }
  return false;
}

bool Threads::same_stack(FrameId a, FrameId b) const {
  while (a != b) {
    if (a == kBottom || b == kBottom) return false;
    const Frame& x = frames_[a];
    const Frame& y = frames_[b];
    if (x.depth != y.depth || x.state != y.state || x.count != y.count) return false;
    a = x.below;
    b = y.below;
  }
  return true;
}

void Threads::call(const Call& call, bool covered) {
  if (!fits(call.next, call.frame)) return;
  frames_.push_back({call.next, call.next_count, call.frame, depth(call.frame) + 1});
  add({call.callee, 0, static_cast<FrameId>(frames_.size() - 1), covered});
}

void Threads::leave(std::uint32_t count, FrameId frame) {
  if (frame == kBottom) {
    sets_.back().returned = std::min(sets_.back().returned, count);
    return;
  }
  const Frame target = frames_[frame];
  add({target.state, target.count, target.below, false});
}

bool Threads::goes_on() const {
  return returned() ||
         std::ranges::any_of(top(), [&](const Thread& thread) { return !automaton_->bytes(automaton_->states[thread.state]).empty(); });
}

std::uint32_t Threads::base_count(const Thread& thread) const {
  std::uint32_t count = thread.count;
  for (FrameId frame = thread.frame; frame != kBottom; frame = frames_[frame].below) count = frames_[frame].count;
  return count;
}

// Frames refer to older ones only, so one pass from the newest marks and one from the oldest moves.
void Threads::keep_top() {
  const Set top = sets_.back();
  threads_.erase(threads_.begin(), threads_.begin() + static_cast<std::ptrdiff_t>(top.begin));
  sets_.assign(1, {0, 0, top.returned});
  if (frames_.size() < kFramesWorthCompacting) return;
  moved_.assign(frames_.size(), 0);
  for (const Thread& thread : threads_)
    if (thread.frame != kBottom) moved_[thread.frame] = 1;
  for (std::size_t i = frames_.size(); i-- > 0;)
    if (moved_[i] != 0 && frames_[i].below != kBottom) moved_[frames_[i].below] = 1;
  FrameId kept = 0;
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    if (moved_[i] == 0) continue;
    Frame frame = frames_[i];
    if (frame.below != kBottom) frame.below = moved_[frame.below];
    moved_[i] = kept;
    frames_[kept++] = frame;
  }
  frames_.resize(kept);
  for (Thread& thread : threads_)
    if (thread.frame != kBottom) thread.frame = moved_[thread.frame];
}

}  // namespace braid::grammar
