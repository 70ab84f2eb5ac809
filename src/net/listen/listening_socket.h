// Sockets that listen: bound here, or given by another process.
#pragma once

#include "braid/result.h"
#include "net/http/file_descriptor.h"
#include "net/service/server_options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace braid::net {

struct ListeningSocket {
  FileDescriptor file;
  std::string name;        // 127.0.0.1:8000, [::1]:8000 or the path
  std::uint16_t port = 0;  // of TCP
  std::string unix_path;   // empty: TCP; @name: an abstract one
  bool unlinks = false;    // who stops listening for good removes the path
};

// kIo with the address and the system's reason. With `only_v6` an IPv6 wildcard leaves IPv4 to another socket.
Result<ListeningSocket> listen_tcp(const TcpAddress& address, int backlog, bool only_v6);

// Replaces a socket that nobody listens on any more; kIo when somebody does, or when the path is anything else.
Result<ListeningSocket> listen_unix(const std::string& path, unsigned mode, int backlog);

// A stream socket that listens already; kInvalidArgument when it is none.
Result<ListeningSocket> adopt_socket(FileDescriptor file);

// Adds those of `others` that are not among them: two processes may have been given the same socket.
void add_sockets(std::vector<ListeningSocket>& sockets, std::vector<ListeningSocket> others);

// What systemd, or whoever speaks its protocol, has opened for this process (LISTEN_PID, LISTEN_FDS: sd_listen_fds(3)); usually
// nothing. Takes the variables out of the environment: call it before there are threads.
Result<std::vector<ListeningSocket>> activated_sockets();

}  // namespace braid::net
