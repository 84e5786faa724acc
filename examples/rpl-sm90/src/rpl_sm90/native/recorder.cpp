// Records what a CUDA program does on its GPUs, through CUPTI's activity API.
//
// The CUDA driver loads this library by CUDA_INJECTION64_PATH and calls InitializeInjection when the program first uses CUDA
// (CUPTI documentation, "Usage", "CUPTI Injection"). Each process writes one file into $RPL_CUPTI_FOLDER. libcupti itself is opened
// at run time ($RPL_CUPTI_LIBRARY), so that the program's own search for libraries is left as it is, and so that a test can stand
// in for it.
//
// The file, all numbers little-endian: 8 bytes "RPLCUPT1", then blocks of {u32 kind, u32 table, u64 bytes} and their bytes.
//   kind 1  a table: its number, and as text its name and columns, separated by blanks; a column with '*' holds numbers of strings
//   kind 2  rows of a table: 64-bit signed numbers, row after row
//   kind 3  a string: its number (64 bits), then its text
//   kind 4  the end: how many records CUPTI dropped (64 bits). A file without it was not written to its end.
// Names of tables and columns are those of an SQLite export of Nsight Systems, so one reader serves both.
#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

constexpr size_t kBufferBytes = size_t{8} << 20;  // chosen: some 30 000 records; CUPTI's samples use 8 MB as well
constexpr size_t kWriteBytes = size_t{1} << 20;
constexpr uint32_t kFlushMilliseconds = 500;  // what a program loses that dies by a signal

// The functions of CUPTI that are used, from the library that was opened.
struct Cupti {
    decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
    decltype(&cuptiActivityEnable) enable;
    decltype(&cuptiActivityFlushAll) flush_all;
    decltype(&cuptiActivityFlushPeriod) flush_period;
    decltype(&cuptiActivityGetNextRecord) next_record;
    decltype(&cuptiActivityGetNumDroppedRecords) dropped_records;
    decltype(&cuptiGetCallbackName) callback_name;
    decltype(&cuptiGetResultString) result_string;

    bool open(const char* path, std::string& problem) {
        void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (library == nullptr) {
            problem = dlerror();
            return false;
        }
        return take(library, "cuptiActivityRegisterCallbacks", register_callbacks, problem) &&
               take(library, "cuptiActivityEnable", enable, problem) &&
               take(library, "cuptiActivityFlushAll", flush_all, problem) &&
               take(library, "cuptiActivityFlushPeriod", flush_period, problem) &&
               take(library, "cuptiActivityGetNextRecord", next_record, problem) &&
               take(library, "cuptiActivityGetNumDroppedRecords", dropped_records, problem) &&
               take(library, "cuptiGetCallbackName", callback_name, problem) &&
               take(library, "cuptiGetResultString", result_string, problem);
    }

private:
    template <typename Function>
    static bool take(void* library, const char* name, Function& function, std::string& problem) {
        function = reinterpret_cast<Function>(dlsym(library, name));
        if (function == nullptr) problem = std::string("it has no ") + name;
        return function != nullptr;
    }
};

enum Table : uint32_t { kKernels, kCopies, kFills, kCalls, kSynchronizations, kEvents, kStreams, kContexts, kGpus, kDevices, kSystem, kSession, kTables };

// Columns in the order in which rows give them.
constexpr std::array<const char*, kTables> kDeclared = {
    "CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid gridX gridY gridZ blockX blockY blockZ "
    "staticSharedMemory dynamicSharedMemory localMemoryPerThread demangledName mangledName registersPerThread",
    "CUPTI_ACTIVITY_KIND_MEMCPY start end deviceId contextId streamId correlationId globalPid bytes copyKind",
    "CUPTI_ACTIVITY_KIND_MEMSET start end deviceId contextId streamId correlationId globalPid bytes",
    "CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start end contextId streamId correlationId globalPid eventId syncType",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT contextId streamId correlationId globalPid eventId",
    "TARGET_INFO_CUDA_STREAM processId contextId streamId flag",
    "TARGET_INFO_CUDA_CONTEXT_INFO processId contextId deviceId nullStreamId",
    "TARGET_INFO_GPU id name* computeMajor computeMinor smCount threadsPerWarp maxShmemPerSm clockRate totalMemory",
    "TARGET_INFO_CUDA_DEVICE gpuId cudaId pid",
    "TARGET_INFO_SYSTEM_ENV name* value*",
    "TARGET_INFO_SESSION_START_TIME utcEpochNs",
};

// The file of this process. Every function but open() is called with the lock held.
class Recording {
public:
    std::mutex lock;

    bool open(const char* folder, std::string& problem) {
        const std::string path = std::string(folder) + "/" + std::to_string(getpid()) + ".rplcupti";
        file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file_ < 0) {
            problem = path + ": " + std::strerror(errno);
            return false;
        }
        append("RPLCUPT1", 8);
        for (uint32_t table = 0; table < kTables; ++table) block(1, table, kDeclared[table], std::strlen(kDeclared[table]));
        write_out();
        return true;
    }

    void row(Table table, std::initializer_list<int64_t> values) {
        auto& waiting = rows_[table];
        waiting.insert(waiting.end(), values);
        if (waiting.size() * sizeof(int64_t) >= kWriteBytes) write_rows(table);
    }

    int64_t string(const char* text) {
        if (text == nullptr) text = "";
        const auto [found, added] = strings_.try_emplace(text, static_cast<int64_t>(strings_.size()) + 1);
        if (added) {
            std::string content(reinterpret_cast<const char*>(&found->second), sizeof(int64_t));
            content += text;
            block(3, 0, content.data(), content.size());
        }
        return found->second;
    }

    // The name as a person writes it, once per mangled name.
    int64_t demangled(const char* mangled) {
        if (mangled == nullptr) return string("");
        const auto known = demangled_.find(mangled);
        if (known != demangled_.end()) return known->second;
        int status = 0;
        char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
        const int64_t number = string(status == 0 ? text : mangled);
        std::free(text);
        demangled_.emplace(mangled, number);
        return number;
    }

    bool first(std::unordered_set<uint64_t>& known, uint64_t key) { return known.insert(key).second; }

    void flush() {
        for (uint32_t table = 0; table < kTables; ++table) write_rows(static_cast<Table>(table));
        write_out();
    }

    void close() {
        flush();
        block(4, 0, reinterpret_cast<const char*>(&dropped), sizeof(dropped));
        write_out();
        if (file_ >= 0) ::close(file_);
        file_ = -1;
    }

    int64_t dropped = 0;
    std::unordered_set<uint64_t> devices, contexts;

private:
    void write_rows(Table table) {
        auto& waiting = rows_[table];
        if (waiting.empty()) return;
        block(2, table, reinterpret_cast<const char*>(waiting.data()), waiting.size() * sizeof(int64_t));
        waiting.clear();
    }

    void block(uint32_t kind, uint32_t table, const char* content, size_t bytes) {
        const struct {
            uint32_t kind, table;
            uint64_t bytes;
        } head{kind, table, bytes};
        append(reinterpret_cast<const char*>(&head), sizeof(head));
        append(content, bytes);
    }

    void append(const char* content, size_t bytes) {
        waiting_.insert(waiting_.end(), content, content + bytes);
        if (waiting_.size() >= kWriteBytes) write_out();
    }

    // A full disk ends the recording, not the program: the file stays without its end, and its reader says so.
    void write_out() {
        size_t done = 0;
        while (file_ >= 0 && done < waiting_.size()) {
            const ssize_t written = ::write(file_, waiting_.data() + done, waiting_.size() - done);
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) {
                std::fprintf(stderr, "rpl: the recording ends here: %s\n", std::strerror(errno));
                ::close(file_);
                file_ = -1;
                break;
            }
            done += static_cast<size_t>(written);
        }
        waiting_.clear();
    }

    int file_ = -1;
    std::vector<char> waiting_;
    std::array<std::vector<int64_t>, kTables> rows_;
    std::unordered_map<std::string, int64_t> strings_, demangled_;
};

// Never destroyed: CUPTI's threads may still call while the process ends.
Cupti& cupti() {
    static auto* const functions = new Cupti{};
    return *functions;
}
Recording& recording() {
    static auto* const file = new Recording{};
    return *file;
}

// As Nsight Systems serializes them: process in bits 24 to 47, thread in bits 0 to 23.
int64_t serialized(uint64_t process, uint64_t thread = 0) {
    return static_cast<int64_t>((process & 0xFFFFFF) << 24 | (thread & 0xFFFFFF));
}

int64_t own_pid() {
    static const int64_t pid = serialized(static_cast<uint64_t>(getpid()));
    return pid;
}

// The calls of the driver that a program may make itself; the runtime's own ones appear as calls of the runtime with the same
// correlation, and the reader leaves the driver's out then.
const char* call_name(const CUpti_ActivityAPI& call) {
    const char* name = nullptr;
    const auto domain = call.kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
    return cupti().callback_name(domain, call.cbid, &name) == CUPTI_SUCCESS ? name : nullptr;
}

void keep_kernel(Recording& file, const CUpti_ActivityKernel10& k) {
    file.row(kKernels,
             {static_cast<int64_t>(k.start), static_cast<int64_t>(k.end), k.deviceId, k.contextId, k.streamId, k.correlationId,
              own_pid(), k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ, k.staticSharedMemory, k.dynamicSharedMemory,
              k.localMemoryPerThread, file.demangled(k.name), file.string(k.name), k.registersPerThread});
}

void keep_device(Recording& file, const CUpti_ActivityDevice5& d) {
    if (!file.first(file.devices, d.id)) return;
    file.row(kGpus, {d.id, file.string(d.name), d.computeCapabilityMajor, d.computeCapabilityMinor, d.numMultiprocessors,
                     d.numThreadsPerWarp, d.maxSharedMemoryPerMultiprocessor, int64_t{d.coreClockRate} * 1000,
                     static_cast<int64_t>(d.globalMemorySize)});
    file.row(kDevices, {d.id, d.id, getpid()});
}

void keep(Recording& file, const CUpti_Activity* record) {
    switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
            return keep_kernel(file, *reinterpret_cast<const CUpti_ActivityKernel10*>(record));
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
            const auto& c = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
            return file.row(kCopies, {static_cast<int64_t>(c.start), static_cast<int64_t>(c.end), c.deviceId, c.contextId, c.streamId,
                                      c.correlationId, own_pid(), static_cast<int64_t>(c.bytes), c.copyKind});
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY2: {
            const auto& c = *reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record);
            return file.row(kCopies, {static_cast<int64_t>(c.start), static_cast<int64_t>(c.end), c.deviceId, c.contextId, c.streamId,
                                      c.correlationId, own_pid(), static_cast<int64_t>(c.bytes), c.copyKind});
        }
        case CUPTI_ACTIVITY_KIND_MEMSET: {
            const auto& f = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
            return file.row(kFills, {static_cast<int64_t>(f.start), static_cast<int64_t>(f.end), f.deviceId, f.contextId, f.streamId,
                                     f.correlationId, own_pid(), static_cast<int64_t>(f.bytes)});
        }
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER: {
            const auto& a = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
            return file.row(kCalls, {static_cast<int64_t>(a.start), static_cast<int64_t>(a.end), serialized(a.processId, a.threadId),
                                     a.correlationId, file.string(call_name(a)), a.returnValue});
        }
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
            const auto& s = *reinterpret_cast<const CUpti_ActivitySynchronization2*>(record);
            return file.row(kSynchronizations, {static_cast<int64_t>(s.start), static_cast<int64_t>(s.end), s.contextId, s.streamId,
                                                s.correlationId, own_pid(), s.cudaEventId, s.type});
        }
        case CUPTI_ACTIVITY_KIND_CUDA_EVENT: {
            const auto& e = *reinterpret_cast<const CUpti_ActivityCudaEvent2*>(record);
            return file.row(kEvents, {e.contextId, e.streamId, e.correlationId, own_pid(), e.eventId});
        }
        case CUPTI_ACTIVITY_KIND_STREAM: {
            const auto& s = *reinterpret_cast<const CUpti_ActivityStream*>(record);
            return file.row(kStreams, {getpid(), s.contextId, s.streamId, s.flag});
        }
        case CUPTI_ACTIVITY_KIND_CONTEXT: {
            const auto& c = *reinterpret_cast<const CUpti_ActivityContext3*>(record);
            if (file.first(file.contexts, c.contextId)) file.row(kContexts, {getpid(), c.contextId, c.deviceId, c.nullStreamId});
            return;
        }
        case CUPTI_ACTIVITY_KIND_DEVICE:
            return keep_device(file, *reinterpret_cast<const CUpti_ActivityDevice5*>(record));
        default:
            return;
    }
}

void CUPTIAPI buffer_requested(uint8_t** buffer, size_t* size, size_t* most_records) {
    *size = kBufferBytes;
    *most_records = 0;
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
    if (*buffer == nullptr) *size = 0;
}

void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t /*size*/, size_t valid) {
    auto& file = recording();
    const std::lock_guard<std::mutex> held(file.lock);
    CUpti_Activity* record = nullptr;
    while (valid > 0 && cupti().next_record(buffer, valid, &record) == CUPTI_SUCCESS) keep(file, record);
    size_t dropped = 0;
    if (cupti().dropped_records(context, stream, &dropped) == CUPTI_SUCCESS) file.dropped += static_cast<int64_t>(dropped);
    std::free(buffer);
    file.flush();
}

void at_end() {
    cupti().flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    auto& file = recording();
    const std::lock_guard<std::mutex> held(file.lock);
    file.close();
}

bool enable(CUpti_ActivityKind kind, const char* what) {
    const CUptiResult result = cupti().enable(kind);
    if (result == CUPTI_SUCCESS) return true;
    const char* reason = nullptr;
    cupti().result_string(result, &reason);
    std::fprintf(stderr, "rpl: CUPTI does not record %s: %s\n", what, reason != nullptr ? reason : "unknown error");
    return false;
}

}  // namespace

// 1: go on, as CUDA wants it. A program is never stopped because it can't be recorded; rpl says then that there is no recording.
extern "C" __attribute__((visibility("default"))) int InitializeInjection(void) {
    static std::once_flag once;
    std::call_once(once, [] {
        const char* folder = std::getenv("RPL_CUPTI_FOLDER");
        const char* library = std::getenv("RPL_CUPTI_LIBRARY");
        std::string problem;
        if (folder == nullptr) return;
        if (!cupti().open(library != nullptr ? library : "libcupti.so", problem) || !recording().open(folder, problem)) {
            std::fprintf(stderr, "rpl: this program is not recorded: %s\n", problem.c_str());
            return;
        }
        {
            auto& file = recording();
            const std::lock_guard<std::mutex> held(file.lock);
            std::array<char, 256> host{};
            gethostname(host.data(), host.size() - 1);
            file.row(kSystem, {file.string("Hostname"), file.string(host.data())});
        }
        cupti().register_callbacks(buffer_requested, buffer_completed);
        enable(CUPTI_ACTIVITY_KIND_DEVICE, "what the GPU is");
        enable(CUPTI_ACTIVITY_KIND_CONTEXT, "contexts");
        enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels");
        const char* calls = std::getenv("RPL_CUPTI_CALLS");
        if (calls != nullptr && std::strcmp(calls, "1") == 0) {
            enable(CUPTI_ACTIVITY_KIND_MEMCPY, "copies");
            enable(CUPTI_ACTIVITY_KIND_MEMCPY2, "copies between GPUs");
            enable(CUPTI_ACTIVITY_KIND_MEMSET, "memory fills");
            enable(CUPTI_ACTIVITY_KIND_STREAM, "streams");
            enable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "synchronisation");
            enable(CUPTI_ACTIVITY_KIND_CUDA_EVENT, "events");
            enable(CUPTI_ACTIVITY_KIND_RUNTIME, "calls of the runtime");
            enable(CUPTI_ACTIVITY_KIND_DRIVER, "calls of the driver");
        }
        cupti().flush_period(kFlushMilliseconds);
        std::atexit(at_end);
    });
    return 1;
}
