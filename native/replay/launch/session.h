// One replay from the first reservation to the last hash. What it holds is given back in the opposite order.
#pragma once

#include <memory>
#include <optional>

#include "launch/deadline.h"
#include "launch/launcher.h"
#include "launch/loaded_code.h"
#include "memory/copier.h"
#include "memory/placed_memory.h"
#include "memory/restorer.h"

namespace rpl::replay {

// Preloaded where tests stand in for a GPU's driver.
bool over_software_kfd();

class Session {
 public:
  Session(Plan plan, Result& result, Deadline& deadline);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Throws Failure; `result` has what is known until then.
  void start();
  // Where it was, before memory is reserved: its place is free until then.
  void load_code(const CodePlace& place, HeldPages& held);
  void reserve(const std::vector<Pages>& pages, HeldPages& held);
  void replay();

 private:
  void refuse_what_shadows_would_run() const;
  uint64_t place_kernarg();
  // A kernel with its packet.
  struct Subject {
    std::unique_ptr<LoadedCode> code;
    hsa::DispatchPacket packet;
  };
  void load(const Kernel& kernel, uint64_t kernarg);
  void restore(const Subject& subject);
  uint64_t launch(const Subject& subject);
  // Restoring and launching as planned; times go to the result.
  void launch_all();
  void launch_alone();
  void launch_pairs();
  void note_changes();
  void look_at_memory();
  void keep_memory(const std::string& file);
  std::vector<VariableChange> keep_variables(const LoadedCode& code, const std::string& file);
  [[nodiscard]] std::vector<char> bytes_at(uint64_t address, uint64_t size);
  // Where the code lies in its captured place: variables are there already.
  [[nodiscard]] bool in_code(uint64_t address) const;
  [[nodiscard]] uint32_t gpu_of(const Range& range) const;

  Plan plan_;
  Result& result_;
  Deadline& deadline_;
  std::unique_ptr<HsaLibrary> hsa_;
  bool started_ = false;
  Events events_;
  std::unique_ptr<Gpus> gpus_;
  uint32_t gpu_ = 0;
  std::unique_ptr<PlacedMemory> memory_;
  std::unique_ptr<Copier> copier_;
  void* kernarg_ = nullptr;
  std::unique_ptr<Restorer> restorer_;
  bool all_each_time_ = false;     // launches were seen to change different memory
  std::unique_ptr<LoadedCode> first_;  // loaded before memory was reserved
  std::optional<Range> code_in_place_;
  std::vector<Subject> subjects_;  // two where kernels take turns
  std::unique_ptr<Launcher> launcher_;
};

}  // namespace rpl::replay
