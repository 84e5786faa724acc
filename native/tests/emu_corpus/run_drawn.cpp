// run_drawn INPUTS START FOLDER [KERNEL GROUPS BLOCK]...: runs drawn kernels on the CPU, the output of each to FOLDER/KERNEL.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels.h"

extern "C" void corpus_run(void (*f)(const In*, Out*, int), const In* in, Out* out, int n, int groups, int size);

namespace {
In in;
Out start, out;
bool moved(const char* path, const char* mode, void* bytes, size_t size) {
  std::FILE* file = std::fopen(path, mode);
  if (!file) return false;
  const size_t count = *mode == 'r' ? std::fread(bytes, 1, size, file) : std::fwrite(bytes, 1, size, file);
  return std::fclose(file) == 0 && count == size;
}
}  // namespace

int main(int words, char** word) {
  if (words < 4 || words % 3 != 1) return 64;
  if (!moved(word[1], "rb", &in, sizeof in) || !moved(word[2], "rb", &start, sizeof start)) return 65;
  for (int k = 4; k < words; k += 3) {
    void* kernel = dlsym(RTLD_DEFAULT, word[k]);
    if (!kernel) return 69;
    out = start;
    const int groups = std::atoi(word[k + 1]), block = std::atoi(word[k + 2]);
    corpus_run(reinterpret_cast<void (*)(const In*, Out*, int)>(kernel), &in, &out, groups * block, groups, block);
    if (!moved((std::string(word[3]) + "/" + word[k]).c_str(), "wb", &out, sizeof out)) return 70;
  }
  return 0;
}
