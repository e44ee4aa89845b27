// A quantile sketch that one thread adds to while others read.

#ifndef OTT_CORE_STOPWATCH_QUANTILE_RECORDER_H_
#define OTT_CORE_STOPWATCH_QUANTILE_RECORDER_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

#include "ott/core/stopwatch/quantile_sketch.h"

namespace ott::internal {

// Add() may be called by one thread at a time and is wait-free, except that it allocates 272 bytes for each
// octave that durations fall into after the first kInlinePages octaves. Any thread may call AddTo() at any
// time.
class QuantileRecorder {
 public:
  static constexpr int kInlinePages = 4;

  QuantileRecorder() = default;
  QuantileRecorder(const QuantileRecorder&) = delete;
  QuantileRecorder& operator=(const QuantileRecorder&) = delete;
  ~QuantileRecorder() {
    for (std::atomic<Page*>& octave : octaves_) {
      for (Page* page = octave.load(); page != nullptr;) {
        Page* const next = page->next;
        if (!IsInline(page)) delete page;
        page = next;
      }
    }
  }

  void Add(uint64_t picoseconds) {
    const int bucket = QuantileSketch::BucketOf(picoseconds);
    std::atomic<Page*>& octave = octaves_[bucket / QuantileSketch::kBucketsPerOctave];
    Page* page = octave.load(std::memory_order_relaxed);
    if (__builtin_expect(page == nullptr, 0)) page = AddPage(octave);
    std::atomic<uint32_t>* count = &page->counts[bucket % QuantileSketch::kBucketsPerOctave];
    if (__builtin_expect(count->load(std::memory_order_relaxed) == std::numeric_limits<uint32_t>::max(), 0)) {
      count = &AddPage(octave)->counts[bucket % QuantileSketch::kBucketsPerOctave];
    }
    count->store(count->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  void AddTo(QuantileSketch& sketch) const {
    for (int octave = 0; octave < kNumOctaves; ++octave) {
      const Page* page = octaves_[octave].load(std::memory_order_acquire);
      for (; page != nullptr; page = page->next) {
        for (int i = 0; i < QuantileSketch::kBucketsPerOctave; ++i) {
          sketch.AddToBucket(octave * QuantileSketch::kBucketsPerOctave + i,
                             page->counts[i].load(std::memory_order_relaxed));
        }
      }
    }
  }

 private:
  static constexpr int kNumOctaves = QuantileSketch::kNumBuckets / QuantileSketch::kBucketsPerOctave;

  // Counts of one octave. One that is full leads a new page, with the older ones behind it.
  struct Page {
    std::atomic<uint32_t> counts[QuantileSketch::kBucketsPerOctave] = {};
    Page* next = nullptr;
  };

  Page* AddPage(std::atomic<Page*>& octave) {
    Page* const page = num_inline_pages_ < kInlinePages ? &inline_pages_[num_inline_pages_++] : new Page;
    page->next = octave.load(std::memory_order_relaxed);
    octave.store(page, std::memory_order_release);
    return page;
  }

  bool IsInline(const Page* page) const {
    return page >= inline_pages_ && page < inline_pages_ + kInlinePages;
  }

  std::atomic<Page*> octaves_[kNumOctaves] = {};
  int num_inline_pages_ = 0;
  Page inline_pages_[kInlinePages];
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_QUANTILE_RECORDER_H_
