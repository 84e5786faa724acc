// A rocprofv3 that starts at once: hands its command line to a stand-in that is kept ready (ready.py)
// and ends as that ended. Without one it becomes the usual stand-in. Compiled with SOCKET and USUAL.
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int server = -1;

static void pass_on(int number) {
  int kept = errno;
  unsigned char byte = (unsigned char)number;
  if (write(server, &byte, 1) < 0) _exit(128 + number);
  errno = kept;
}

static void append(char **text, size_t *size, const char *word) {
  size_t length = strlen(word) + 1;
  *text = realloc(*text, *size + length);
  if (!*text) exit(1);
  memcpy(*text + *size, word, length);
  *size += length;
}

static int connect_to_server(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(SOCKET) >= sizeof(address.sun_path)) return -1;
  strcpy(address.sun_path, SOCKET);
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made >= 0 && connect(made, (struct sockaddr *)&address, sizeof(address)) == 0) return made;
  if (made >= 0) close(made);
  return -1;
}

// Our standard streams travel with the size of what follows.
static int send_streams(uint32_t size) {
  int streams[3] = {0, 1, 2};
  char room[CMSG_SPACE(sizeof(streams))] = {0};
  struct iovec part = {&size, sizeof(size)};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(streams));
  memcpy(CMSG_DATA(header), streams, sizeof(streams));
  return sendmsg(server, &message, 0) == sizeof(size) ? 0 : -1;
}

static int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
  server = connect_to_server();
  if (server < 0) {
    execv(USUAL, argv);
    perror(USUAL);
    return 127;
  }
  char *text = NULL, number[16], *here = getcwd(NULL, 0);
  size_t size = 0, sent = 0;
  snprintf(number, sizeof(number), "%d", argc - 1);
  append(&text, &size, here ? here : "/");
  append(&text, &size, number);
  for (int i = 1; i < argc; ++i) append(&text, &size, argv[i]);
  for (char **entry = environ; *entry; ++entry) append(&text, &size, *entry);
  if (send_streams((uint32_t)size) != 0) return 1;
  while (sent < size) {
    ssize_t step = write(server, text + sent, size - sent);
    if (step < 0) return 1;
    sent += (size_t)step;
  }
  const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); ++i) {
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    sigaction(passed[i], &action, NULL);
  }
  int32_t status;
  if (read(server, &status, sizeof(status)) != sizeof(status)) return 1;
  return end_as(status);
}
