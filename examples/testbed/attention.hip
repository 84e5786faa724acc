// softmax(Q * K^T / sqrt(d)) * V for two heads, each on a stream of its own; a third kernel adds both when both
// are done. Argument: length of the sequence.
#include "check.h"

constexpr unsigned kDepth = 32, kHeads = 2, kThreads = 64;

__global__ void attention_scores(const float* q, const float* k, float* scores, unsigned length) {
  const unsigned row = blockIdx.y, column = blockIdx.x * kThreads + threadIdx.x;
  if (column >= length) return;
  float sum = 0;
  for (unsigned i = 0; i < kDepth; ++i) sum += q[row * kDepth + i] * k[column * kDepth + i];
  scores[row * length + column] = sum * rsqrtf(kDepth);
}

__global__ void attention_softmax(float* scores, unsigned length) {
  __shared__ float part[kThreads];
  float* row = scores + size_t{blockIdx.x} * length;
  float most = -INFINITY;
  for (unsigned i = threadIdx.x; i < length; i += kThreads) most = fmaxf(most, row[i]);
  part[threadIdx.x] = most;
  __syncthreads();
  for (unsigned i = 0; i < kThreads; ++i) most = fmaxf(most, part[i]);
  __syncthreads();
  float sum = 0;
  for (unsigned i = threadIdx.x; i < length; i += kThreads) sum += row[i] = expf(row[i] - most);
  part[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (unsigned i = 0; i < kThreads; ++i) sum += part[i];
  for (unsigned i = threadIdx.x; i < length; i += kThreads) row[i] /= sum;
}

__global__ void attention_values(const float* scores, const float* v, float* out, unsigned length) {
  const unsigned row = blockIdx.x * (kThreads / kDepth) + threadIdx.x / kDepth, column = threadIdx.x % kDepth;
  if (row >= length) return;
  float sum = 0;
  for (unsigned i = 0; i < length; ++i) sum += scores[row * length + i] * v[i * kDepth + column];
  out[row * kDepth + column] = sum;
}

__global__ void add_heads(const float* first, const float* second, float* out, unsigned count) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) out[i] = first[i] + second[i];
}

void add_expected(const std::vector<float>& q, const std::vector<float>& k, const std::vector<float>& v, unsigned length,
                  std::vector<double>& expected) {
  std::vector<double> row(length);
  for (unsigned i = 0; i < length; ++i) {
    double sum = 0;
    for (unsigned j = 0; j < length; ++j) {
      row[j] = 0;
      for (unsigned d = 0; d < kDepth; ++d) row[j] += static_cast<double>(q[i * kDepth + d]) * k[j * kDepth + d];
      sum += row[j] = std::exp(row[j] / std::sqrt(static_cast<double>(kDepth)));
    }
    for (unsigned j = 0; j < length; ++j)
      for (unsigned d = 0; d < kDepth; ++d) expected[i * kDepth + d] += row[j] / sum * v[j * kDepth + d];
  }
}

int main(int count, char** words) {
  const unsigned length = size_argument(count, words, 128);
  const size_t size = size_t{length} * kDepth;
  std::vector<double> expected(size);
  const float *queries[kHeads], *keys[kHeads], *values[kHeads];
  float *scores[kHeads], *heads[kHeads];
  hipStream_t streams[kHeads];
  for (unsigned head = 0; head < kHeads; ++head) {
    const std::vector<float> q = numbers(size, 10 + head), k = numbers(size, 20 + head), v = numbers(size, 30 + head);
    add_expected(q, k, v, length, expected);
    queries[head] = on_device(q);
    keys[head] = on_device(k);
    values[head] = on_device(v);
    scores[head] = on_device(std::vector<float>(size_t{length} * length));
    heads[head] = on_device(std::vector<float>(size));
    CHECK(hipStreamCreate(&streams[head]));
  }
  float* out = on_device(std::vector<float>(size));
  const dim3 grid((length + kThreads - 1) / kThreads, length);
  constexpr unsigned kRows = kThreads / kDepth;
  for (unsigned head = 0; head < kHeads; ++head) {
    attention_scores<<<grid, kThreads, 0, streams[head]>>>(queries[head], keys[head], scores[head], length);
    attention_softmax<<<length, kThreads, 0, streams[head]>>>(scores[head], length);
    attention_values<<<(length + kRows - 1) / kRows, kThreads, 0, streams[head]>>>(scores[head], values[head], heads[head], length);
  }
  hipEvent_t done{};
  CHECK(hipEventCreate(&done));
  CHECK(hipEventRecord(done, streams[1]));
  CHECK(hipStreamWaitEvent(streams[0], done, 0));
  const auto blocks = static_cast<unsigned>((size + kThreads - 1) / kThreads);
  add_heads<<<blocks, kThreads, 0, streams[0]>>>(heads[0], heads[1], out, static_cast<unsigned>(size));
  CHECK(hipStreamSynchronize(streams[0]));
  return report("attention", on_host(out, size), expected, 1e-5);
}
