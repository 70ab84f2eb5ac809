// The signals that an operator may send to a server, and what they are to it.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <string>

namespace braid::app {

enum class Wish {
  kEnd,     // SIGINT, SIGTERM, SIGQUIT
  kReload,  // SIGHUP
  kReport,  // SIGUSR1: a line about its state, in a log that is opened anew
  kNothing  // the others, which would end the process if nobody took them
};

Wish wish_of(int signal);
std::string signal_name(int signal);  // "SIGUSR1", "SIGRTMIN+3"

// All of the above. Those that are nothing to it, only where nobody else has taken them, such as a profiler.
void add_operator_signals(boost::asio::signal_set& signals);

}  // namespace braid::app
