// From a process and a number it counts to an index.

#ifndef OTT_CORE_KERNEL_PROFILE_ID_INDEX_H_
#define OTT_CORE_KERNEL_PROFILE_ID_INDEX_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "ott/core/kernel_profile/growing_array.h"
#include "ott/core/kernel_profile/profile.h"

namespace ott::kernels {

// A map for ids that come nearly in order, as correlation ids and sequence numbers do: pages of 64
// consecutive ones, so that most look-ups hash nothing.
class IdIndex {
 public:
  // kNone until it is set.
  uint32_t& At(uint16_t process, int64_t id) {
    const Key key(process, id >> kPageBits);
    if (key != last_key_ || pages_.empty()) {
      last_key_ = key;
      const auto [entry, added] = page_of_.try_emplace(key, static_cast<uint32_t>(pages_.size()));
      if (added) pages_.push_back(EmptyPage());
      last_page_ = entry->second;
    }
    return pages_[last_page_][Slot(id)];
  }

  // kNone if nothing was set.
  uint32_t Find(uint16_t process, int64_t id) {
    const Key key(process, id >> kPageBits);
    if (key != last_key_ || pages_.empty()) {
      const auto entry = page_of_.find(key);
      if (entry == page_of_.end()) return kNone;
      last_key_ = key;
      last_page_ = entry->second;
    }
    return pages_[last_page_][Slot(id)];
  }

 private:
  static constexpr int kPageBits = 6;
  using Key = std::pair<uint16_t, int64_t>;

  using Page = std::array<uint32_t, size_t{1} << kPageBits>;

  static size_t Slot(int64_t id) { return static_cast<size_t>(id) & ((size_t{1} << kPageBits) - 1); }
  static Page EmptyPage() {
    Page page;
    page.fill(kNone);
    return page;
  }

  absl::flat_hash_map<Key, uint32_t> page_of_;
  GrowingArray<Page> pages_;
  Key last_key_;
  uint32_t last_page_ = 0;
};

}  // namespace ott::kernels

#endif  // OTT_CORE_KERNEL_PROFILE_ID_INDEX_H_
