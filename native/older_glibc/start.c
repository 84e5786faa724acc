// What a program begins with, by the symbol of glibc 2.28 and before: there the program runs its own constructors.
typedef int Main(int, char**, char**);
typedef void Procedure(void);
typedef void Constructor(int, char**, char**);

extern Constructor* __preinit_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __preinit_array_end[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_end[] __attribute__((visibility("hidden")));

int old_start(Main*, int, char**, Constructor*, Procedure*, Procedure*, void*);
__asm__(".symver old_start, __libc_start_main@GLIBC_2.2.5");

// A newer C library calls it, too, where it is given, and then nothing else.
static void construct(int count, char** words, char** variables) {
  for (Constructor** one = __preinit_array_start; one < __preinit_array_end; ++one) (*one)(count, words, variables);
  for (Constructor** one = __init_array_start; one < __init_array_end; ++one) (*one)(count, words, variables);
}

int __wrap___libc_start_main(Main* main, int count, char** words, Procedure* init, Procedure* fini, Procedure* loader_end, void* stack) {
  (void)init;
  return old_start(main, count, words, construct, fini, loader_end, stack);
}
