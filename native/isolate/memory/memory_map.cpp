#include "memory/memory_map.h"

namespace rpl::isolate {

MemoryMap::MemoryMap(size_t most)
    : allocations_(most), reservations_(most), handles_(most), access_(most), svm_(most) {}

void MemoryMap::add(const Allocation& allocation) {
  if (allocation.size == 0) return;
  const std::scoped_lock lock(mutex_);
  Allocation* const there = allocations_.find(allocation.base);
  if (there != nullptr && allocation.kind == Kind::kLockedHost && there->kind == allocation.kind &&
      there->base == allocation.base && there->size == allocation.size) {
    ++there->uses;
    return;
  }
  keep(allocations_.insert(allocation));
}

std::optional<Allocation> MemoryMap::remove(uint64_t base) {
  const std::scoped_lock lock(mutex_);
  return allocations_.take(base);
}

std::optional<Allocation> MemoryMap::remove_locked(uint64_t host) {
  const std::scoped_lock lock(mutex_);
  const auto is_it = [host](const Allocation& one) {
    return one.kind == Kind::kLockedHost && one.host == host;
  };
  Allocation* found = allocations_.find(host);
  if (found == nullptr || !is_it(*found)) {
    found = nullptr;
    allocations_.visit_all([&](Allocation& one) { found = is_it(one) ? &one : found; });
  }
  if (found == nullptr) return std::nullopt;
  if (found->uses > 1) {
    Allocation once = *found;
    --found->uses;
    once.uses = 1;
    return once;
  }
  return allocations_.take(found->base);
}

void MemoryMap::reserve(uint64_t base, uint64_t size) {
  const std::scoped_lock lock(mutex_);
  keep(reservations_.insert({base, size, 0}));
}

void MemoryMap::unreserve(uint64_t base) {
  const std::scoped_lock lock(mutex_);
  reservations_.take(base);
}

void MemoryMap::create_handle(uint64_t handle, uint64_t pool) {
  const std::scoped_lock lock(mutex_);
  keep(handles_.insert({handle, 1, pool}));
}

void MemoryMap::release_handle(uint64_t handle) {
  const std::scoped_lock lock(mutex_);
  handles_.take(handle);
}

void MemoryMap::map(uint64_t base, uint64_t size, uint64_t in_offset, uint64_t handle) {
  const std::scoped_lock lock(mutex_);
  Allocation mapping;
  mapping.base = base;
  mapping.size = size;
  mapping.kind = Kind::kVmem;
  mapping.in_offset = in_offset;
  mapping.handle = handle;
  if (const Range* of = handles_.find(handle)) mapping.pool = of->pool;
  if (const Range* in = reservations_.find(base)) {
    mapping.reservation = in->base;
    mapping.reserved_size = in->size;
  }
  forget_access(base, size);
  keep(allocations_.insert(mapping));
}

void MemoryMap::unmap(uint64_t base, uint64_t size) {
  const std::scoped_lock lock(mutex_);
  for (const Allocation* one = nullptr; (one = allocations_.first_in(base, size)) != nullptr;) {
    if (one->kind != Kind::kVmem) break;
    allocations_.take(one->base);
  }
  forget_access(base, size);
}

void MemoryMap::set_access(uint64_t base, uint64_t size, const hsa::MemoryAccess* access, size_t count) {
  const std::scoped_lock lock(mutex_);
  allocations_.visit(base, size, [&](const Allocation& mapping) {
    for (size_t i = 0; i < count && mapping.kind == Kind::kVmem; ++i) give_access(mapping.base, access[i]);
  });
}

void MemoryMap::give_access(uint64_t mapping, const hsa::MemoryAccess& access) {
  for (Access& one : access_) {
    if (one.mapping != mapping || one.agent != access.agent.handle) continue;
    one.permissions = access.permissions;
    return;
  }
  keep(access_.append({mapping, access.agent.handle, access.permissions}));
}

void MemoryMap::forget_access(uint64_t base, uint64_t size) {
  for (size_t i = access_.size(); i-- > 0;) {
    if (access_[i].mapping >= base && access_[i].mapping - base < size) access_.erase(i);
  }
}

uint32_t MemoryMap::permissions_of(uint64_t mapping, uint64_t agent) const {
  const auto* const found = std::ranges::find_if(
      access_, [=](const Access& one) { return one.mapping == mapping && one.agent == agent; });
  return found == access_.end() ? 0 : found->permissions;
}

void MemoryMap::give_svm(uint64_t base, uint64_t size) {
  Allocation range;
  range.kind = Kind::kSvm;
  range.base = base;
  range.size = size;
  take_svm(base, size);
  const std::scoped_lock lock(mutex_);
  keep(svm_.insert(range));
}

// Attributes hold for any part of a range: what is left of it on both sides stays.
void MemoryMap::take_svm(uint64_t base, uint64_t size) {
  const std::scoped_lock lock(mutex_);
  for (const Allocation* found = nullptr; (found = svm_.first_in(base, size)) != nullptr;) {
    const Allocation whole = *found;
    svm_.take(whole.base);
    Allocation left = whole;
    left.size = base > whole.base ? base - whole.base : 0;
    Allocation right = whole;
    right.base = base + size;
    right.size = whole.base + whole.size > right.base ? whole.base + whole.size - right.base : 0;
    if (left.size != 0) keep(svm_.insert(left));
    if (right.size != 0) keep(svm_.insert(right));
  }
}

std::vector<Allocation> MemoryMap::reachable_by(uint64_t agent) {
  const std::scoped_lock lock(mutex_);
  std::vector<Allocation> found;
  allocations_.visit_all([&](Allocation one) {
    if (one.kind == Kind::kVmem) {
      one.permissions = permissions_of(one.base, agent);
      if (one.permissions == 0) return;
    }
    found.push_back(one);
  });
  // Memory of a pool may have attributes too: it is listed once, as memory of the pool.
  svm_.visit_all([&](const Allocation& one) {
    bool free = true;
    allocations_.visit(one.base, one.size, [&](const Allocation&) { free = false; });
    if (free) found.push_back(one);
  });
  std::ranges::sort(found, {}, &Allocation::base);
  return found;
}

bool MemoryMap::exhausted() {
  const std::scoped_lock lock(mutex_);
  return exhausted_;
}

}  // namespace rpl::isolate
