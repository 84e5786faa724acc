#include "kernels.h"
KERNEL histogram(const unsigned char* in, unsigned* counts, int n, int bins) {
  SHARED unsigned local[256];
  for (int k = T; k < 256; k += D) local[k] = 0;
  SYNC();
  for (int i = I; i < n; i += ALL) {
    const int value = in[i];
    if (value < bins) ADD(&local[value], 1u);
  }
  SYNC();
  for (int k = T; k < bins && k < 256; k += D) ADD(&counts[k], local[k]);
}
