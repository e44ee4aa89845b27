// Numbers the labels of ranges.

#ifndef OTT_CORE_KERNEL_PROFILE_LABEL_TABLE_H_
#define OTT_CORE_KERNEL_PROFILE_LABEL_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "ott/core/kernel_profile/op_label.h"

namespace ott::kernels {

// Shares the labels of ranges: of tens of millions all but a few thousand are labelled like one before.
// Programs repeat themselves, so a label is first compared with the one that came the last time after the
// same two, which takes a third of the time of splitting the text and looking its parts up.
class LabelTable {
 public:
  // Returns what SplitLabel() says of text: the number of its label, from 0 in the order of their first
  // texts, and its sequence number.
  std::pair<uint32_t, uint64_t> Find(std::string_view text);

  // Moves the labels out, by their numbers.
  std::vector<OpLabel> TakeLabels() { return std::move(labels_); }

 private:
  // The pattern that a label's texts have in common.
  class Pattern {
   public:
    Pattern(std::string_view text, const LabelParts& parts);
    // Returns false for a text of another label, and for some of this one.
    bool Matches(std::string_view text, uint64_t* sequence_number) const;

   private:
    std::string before_;  // the numbers
    std::string after_;
    bool has_numbers_;
    bool has_sequence_number_;
    bool is_usable_ = true;
  };

  // Parts are looked up without a copy of them.
  struct HashOfParts {
    using is_transparent = void;
    template <typename Parts>
    size_t operator()(const Parts& parts) const {
      return absl::Hash<std::pair<absl::string_view, absl::string_view>>()(
          {absl::string_view(parts.first.data(), parts.first.size()),
           absl::string_view(parts.second.data(), parts.second.size())});
    }
  };
  struct SameParts {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return a.first == b.first && a.second == b.second;
    }
  };

  absl::flat_hash_map<std::pair<std::string, std::string>, uint32_t, HashOfParts, SameParts> label_of_;
  std::vector<OpLabel> labels_;
  std::vector<Pattern> patterns_;            // of the first text of each label
  std::array<uint32_t, 4096> guesses_ = {};  // by the two labels before
  uint32_t last_ = 0;
  uint32_t before_last_ = 0;
};

}  // namespace ott::kernels

#endif  // OTT_CORE_KERNEL_PROFILE_LABEL_TABLE_H_
