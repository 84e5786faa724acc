// What a program knows of its own memory, for the test to compare a capture with: a file for each place, named
// by moment and address, in a folder of the process below $KNOWN. Nothing is read back from a GPU for it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// `bytes` bytes at `offset` of memory that begins at `address` and has `size` bytes; the others are zeros.
inline void known_part(const char* moment, const void* address, size_t size, size_t offset, const void* bytes,
                       size_t count) {
  const char* root = std::getenv("KNOWN");
  if (root == nullptr) return;
  const std::string folder = std::string(root) + "/" + std::to_string(getpid());
  mkdir(folder.c_str(), 0777);
  char name[64];
  std::snprintf(name, sizeof(name), "/%s_%llx.bin", moment,
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(address)));
  const int file = open((folder + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const bool written = file >= 0 && ftruncate(file, static_cast<off_t>(size)) == 0 &&
                       pwrite(file, bytes, count, static_cast<off_t>(offset)) == static_cast<ssize_t>(count);
  if (!written) std::exit(70);
  close(file);
}

inline void known(const char* moment, const void* address, const void* bytes, size_t count) {
  known_part(moment, address, count, 0, bytes, count);
}
