// What glibc added or moved after 2.28, by what 2.28 has. References are led here by the linker's --wrap, those of the
// static C++ library, too. The same functions under older names of theirs; four that did not exist are written out.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define FORWARD(result, name, version, parameters, arguments) \
  result old_##name parameters; \
  __asm__(".symver old_" #name ", " #name "@GLIBC_" version); \
  result __wrap_##name parameters { return old_##name arguments; }

FORWARD(void*, dlopen, "2.2.5", (const char* file, int mode), (file, mode))
FORWARD(void*, dlsym, "2.2.5", (void* handle, const char* name), (handle, name))
FORWARD(int, dlclose, "2.2.5", (void* handle), (handle))
FORWARD(char*, dlerror, "2.2.5", (void), ())
FORWARD(int, dladdr, "2.2.5", (const void* address, Dl_info* info), (address, info))
FORWARD(int, dlinfo, "2.3.3", (void* handle, int request, void* info), (handle, request, info))
FORWARD(int, pthread_create, "2.2.5",
        (pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*), void* with), (thread, how, run, with))
FORWARD(int, pthread_join, "2.2.5", (pthread_t thread, void** result), (thread, result))
FORWARD(int, pthread_detach, "2.2.5", (pthread_t thread), (thread))
FORWARD(int, pthread_once, "2.2.5", (pthread_once_t* once, void (*run)(void)), (once, run))
FORWARD(int, pthread_key_create, "2.2.5", (pthread_key_t* key, void (*end)(void*)), (key, end))
FORWARD(int, __pthread_key_create, "2.2.5", (pthread_key_t* key, void (*end)(void*)), (key, end))
FORWARD(int, pthread_key_delete, "2.2.5", (pthread_key_t key), (key))
FORWARD(void*, pthread_getspecific, "2.2.5", (pthread_key_t key), (key))
FORWARD(int, pthread_setspecific, "2.2.5", (pthread_key_t key, const void* value), (key, value))
FORWARD(int, pthread_rwlock_rdlock, "2.2.5", (pthread_rwlock_t* lock), (lock))
FORWARD(int, pthread_rwlock_wrlock, "2.2.5", (pthread_rwlock_t* lock), (lock))
FORWARD(int, pthread_rwlock_unlock, "2.2.5", (pthread_rwlock_t* lock), (lock))
FORWARD(double, exp2, "2.2.5", (double x), (x))
FORWARD(double, log2, "2.2.5", (double x), (x))
FORWARD(double, fmod, "2.2.5", (double x, double y), (x, y))

// Headers of glibc 2.38 and newer call these by names that take binary numbers, too (C23).
#define FORWARD_C23(result, name) \
  result old_c23_##name(const char*, char**, int); \
  __asm__(".symver old_c23_" #name ", " #name "@GLIBC_2.2.5"); \
  result __wrap___isoc23_##name(const char* text, char** end, int base) { return old_c23_##name(text, end, base); }

FORWARD_C23(long, strtol)
FORWARD_C23(long long, strtoll)
FORWARD_C23(unsigned long, strtoul)
FORWARD_C23(unsigned long long, strtoull)

// What stat() and its like were before they became functions: <sys/stat.h> called these, with 1 for the layout of x86-64.
int __xstat(int, const char*, struct stat*);
int __lxstat(int, const char*, struct stat*);
int __fxstat(int, int, struct stat*);
int __wrap_stat(const char* path, struct stat* found) { return __xstat(1, path, found); }
int __wrap_lstat(const char* path, struct stat* found) { return __lxstat(1, path, found); }
int __wrap_fstat(int file, struct stat* found) { return __fxstat(1, file, found); }
int __wrap_fstat64(int file, struct stat* found) { return __fxstat(1, file, found); }

// The C++ library leaves atomic operations out where it is true.
char __wrap___libc_single_threaded = 0;

// By the only clock that pthread_cond_timedwait() knows: a step of that clock moves the end by as much.
int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* end) {
  struct timespec there, here;
  if (clock_gettime(clock, &there) != 0 || clock_gettime(CLOCK_REALTIME, &here) != 0) return EINVAL;
  int64_t ns = end->tv_nsec + (int64_t)here.tv_nsec - there.tv_nsec;
  int64_t seconds = end->tv_sec + (int64_t)here.tv_sec - there.tv_sec + ns / 1000000000;
  ns %= 1000000000;
  if (ns < 0) {
    ns += 1000000000;
    --seconds;
  }
  const struct timespec until = {seconds, ns};
  return pthread_cond_timedwait(condition, mutex, &until);
}

uint32_t __wrap_arc4random(void) {
  uint32_t drawn = 0;
  for (size_t have = 0; have < sizeof drawn;) {
    const ssize_t got = getrandom((char*)&drawn + have, sizeof drawn - have, 0);
    if (got > 0) have += (size_t)got;
    else if (errno != EINTR) break;
  }
  return drawn;
}

// Which object an address belongs to, and where its table for unwinding is (glibc 2.35, <dlfcn.h>); libgcc reads these.
struct Object {
  unsigned long long flags;
  void *begin, *end;
  struct link_map* map;
  void* eh_frame;
  unsigned long long reserved[7];
};
struct Search {
  uintptr_t address;
  struct Object* found;
};

static int has_address(struct dl_phdr_info* info, size_t size, void* data) {
  struct Search* search = data;
  (void)size;
  const char* begin = NULL;
  const char* end = NULL;
  void* table = NULL;
  for (int k = 0; k < info->dlpi_phnum; ++k) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[k];
    const char* place = (const char*)(info->dlpi_addr + part->p_vaddr);
    if (part->p_type == PT_GNU_EH_FRAME) table = (void*)place;
    if (part->p_type != PT_LOAD) continue;
    if (search->address - (uintptr_t)place < part->p_memsz) begin = place, end = place + part->p_memsz;
  }
  if (!begin || !table) return 0;
  memset(search->found, 0, sizeof *search->found);
  search->found->begin = (void*)begin;
  search->found->end = (void*)end;
  search->found->eh_frame = table;
  return 1;
}

int __wrap__dl_find_object(void* address, struct Object* found) {
  struct Search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(has_address, &search) == 1 ? 0 : -1;
}
