#include "capture/region_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "capture/chunk.h"

#ifdef RPL_HAVE_ZSTD
#include <zstd.h>
#endif

namespace rpl::isolate {
namespace {

class File {
 public:
  explicit File(const std::string& name) {
    constexpr mode_t kMode = 0666;
    file_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode);
  }
  ~File() {
    const int why = errno;
    if (file_ >= 0) close(file_);
    errno = why;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] bool is_open() const { return file_ >= 0; }

  [[nodiscard]] bool write(Bytes bytes, uint64_t offset) const {
    while (!bytes.empty()) {
      const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written == 0) errno = EIO;
      if (written <= 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(written));
      offset += static_cast<uint64_t>(written);
    }
    return true;
  }
  bool finish(uint64_t size, uint64_t& stored) {
    constexpr uint64_t kBlock = 512;
    struct stat status{};
    const bool whole = ftruncate(file_, static_cast<off_t>(size)) == 0 && fstat(file_, &status) == 0;
    stored = static_cast<uint64_t>(status.st_blocks) * kBlock;
    const bool closed = close(file_) == 0;
    file_ = -1;
    return whole && closed;
  }

 private:
  int file_ = -1;
};

class SparseFile : public RegionFile {
 public:
  explicit SparseFile(const std::string& name) : file_(name) {}
  [[nodiscard]] bool is_open() const { return file_.is_open(); }

  bool append(Bytes bytes) override {
    // Neighbouring blocks with data go out in one call.
    for (size_t at = 0; at < bytes.size();) {
      const size_t data = end_of_run(bytes, at, true);
      at = end_of_run(bytes, data, false);
      if (at > data && !file_.write(bytes.subspan(data, at - data), offset_ + data)) return false;
    }
    offset_ += bytes.size();
    return true;
  }
  bool finish(uint64_t& stored) override { return file_.finish(offset_, stored); }

 private:
  static constexpr size_t kHoleBytes = 64 << 10;

  static size_t end_of_run(Bytes bytes, size_t at, bool of_zeros) {
    while (at < bytes.size()) {
      const size_t size = std::min(kHoleBytes, bytes.size() - at);
      if (is_zero(bytes.subspan(at, size)) != of_zeros) break;
      at += size;
    }
    return at;
  }

  File file_;
  uint64_t offset_ = 0;
};

#ifdef RPL_HAVE_ZSTD
class CompressedFile : public RegionFile {
 public:
  explicit CompressedFile(const std::string& name)
      : file_(name), context_(ZSTD_createCCtx(), &ZSTD_freeCCtx), buffer_(ZSTD_CStreamOutSize()) {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }
  [[nodiscard]] bool is_open() const { return file_.is_open() && context_; }

  bool append(Bytes bytes) override { return compress(bytes, ZSTD_e_continue); }
  bool finish(uint64_t& stored) override {
    if (!compress({}, ZSTD_e_end)) return false;
    uint64_t blocks = 0;
    stored = written_;
    return file_.finish(written_, blocks);
  }

 private:
  bool compress(Bytes bytes, ZSTD_EndDirective mode) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const size_t left = ZSTD_compressStream2(context_.get(), &out, &in, mode);
      if (ZSTD_isError(left) != 0) errno = ENOMEM;
      if (ZSTD_isError(left) != 0 || !file_.write(Bytes(buffer_).first(out.pos), written_)) return false;
      written_ += out.pos;
      if (mode == ZSTD_e_continue ? in.pos == in.size : left == 0) return true;
    }
  }

  File file_;
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context_;
  std::vector<std::byte> buffer_;
  uint64_t written_ = 0;
};
#endif

}  // namespace

std::unique_ptr<RegionFile> RegionFile::create(const std::string& name, Compression compression) {
#ifdef RPL_HAVE_ZSTD
  if (compression == Compression::kZstd) {
    auto file = std::make_unique<CompressedFile>(name + kPackedSuffix);
    return file->is_open() ? std::move(file) : nullptr;
  }
#else
  (void)compression;
#endif
  auto file = std::make_unique<SparseFile>(name);
  return file->is_open() ? std::move(file) : nullptr;
}

bool can_compress() {
#ifdef RPL_HAVE_ZSTD
  return true;
#else
  return false;
#endif
}

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

bool write_file(const std::string& name, Bytes bytes) {
  const std::string fresh = name + ".tmp";
  unlink(fresh.c_str());
  File file(fresh);
  uint64_t stored = 0;
  return file.is_open() && file.write(bytes, 0) && file.finish(bytes.size(), stored) &&
         std::rename(fresh.c_str(), name.c_str()) == 0;
}

bool write_file(const std::string& name, const std::string& text) {
  return write_file(name, Bytes(reinterpret_cast<const std::byte*>(text.data()), text.size()));
}

}  // namespace rpl::isolate
