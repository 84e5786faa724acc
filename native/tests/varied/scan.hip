#include "kernels.h"
KERNEL scan(const unsigned* in, unsigned* out, int n, int inclusive) {
  SHARED unsigned part[2][256];
  const int i = I;
  int now = 0;
  part[0][T] = i < n ? in[i] : 0;
  SYNC();
  for (int step = 1; step < D; step *= 2) {
    part[1 - now][T] = T >= step ? part[now][T] + part[now][T - step] : part[now][T];
    now = 1 - now;
    SYNC();
  }
  const unsigned own = i < n ? in[i] : 0;
  if (i < n) out[i] = inclusive ? part[now][T] : part[now][T] - own;
}
